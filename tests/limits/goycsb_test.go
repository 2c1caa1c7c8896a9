//go:build limits

package limits

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// goYCSB is the name of the tool for MongoDB: this test's program with that name. It prints what go-ycsb prints. The
// workload of its properties is one of the operations below.
const goYCSB = "go-ycsb"

// documents is how many documents a collection has.
const documents = 20000

// operations are the workloads, by name.
var operations = map[string]func(ctx context.Context, c *mongo.Collection, client int) error{
	"point": func(ctx context.Context, c *mongo.Collection, _ int) error {
		return c.FindOne(ctx, bson.D{{Key: "_id", Value: rand.IntN(documents)}}).Err()
	},
	"scan": func(ctx context.Context, c *mongo.Collection, _ int) error {
		return c.FindOne(ctx, bson.D{{Key: "k", Value: documents - 1 - rand.IntN(100)}}).Err()
	},
	"sort": func(ctx context.Context, c *mongo.Collection, _ int) error {
		return c.FindOne(ctx, bson.D{}, options.FindOne().SetSort(bson.D{{Key: "s", Value: 1}}).SetSkip(5)).Err()
	},
	"hot": func(ctx context.Context, c *mongo.Collection, _ int) error {
		_, err := c.UpdateOne(ctx, bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}})
		return err
	},
	"spread": func(ctx context.Context, c *mongo.Collection, _ int) error {
		_, err := c.UpdateOne(ctx, bson.D{{Key: "_id", Value: rand.IntN(documents)}}, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}})
		return err
	},
	"large": func(ctx context.Context, c *mongo.Collection, _ int) error {
		cursor, err := c.Find(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$lt", Value: 2000}}}}, options.Find().SetBatchSize(2000))
		if err != nil {
			return err
		}
		for cursor.Next(ctx) {
			continue
		}
		return cursor.Close(ctx)
	},
	"pausing": func(ctx context.Context, c *mongo.Collection, _ int) error {
		time.Sleep(20 * time.Millisecond)
		return c.FindOne(ctx, bson.D{{Key: "_id", Value: rand.IntN(documents)}}).Err()
	},
	"slow": func(ctx context.Context, c *mongo.Collection, _ int) error {
		time.Sleep(60 * time.Millisecond)
		_, err := c.UpdateOne(ctx, bson.D{{Key: "_id", Value: rand.IntN(documents)}}, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}})
		return err
	},
	"connecting": func(ctx context.Context, c *mongo.Collection, _ int) error {
		client, err := mongo.Connect(options.Client().ApplyURI(address).SetMaxPoolSize(1))
		if err != nil {
			return err
		}
		err = client.Database("goycsb").Collection("usertable").FindOne(ctx, bson.D{{Key: "_id", Value: rand.IntN(documents)}}).Err()
		return errors.Join(err, client.Disconnect(ctx))
	},
	"plans": func(ctx context.Context, c *mongo.Collection, _ int) error { return findByAll(ctx, c) },
	"hinted": func(ctx context.Context, c *mongo.Collection, _ int) error {
		return findByAll(ctx, c, options.Find().SetHint(bson.D{{Key: "f0", Value: 1}}))
	},
	"insert": func(ctx context.Context, c *mongo.Collection, _ int) error {
		_, err := c.InsertOne(ctx, bson.D{{Key: "f", Value: strings.Repeat("x", 100)}})
		return err
	},
}

// indexedFields is how many fields of the documents in the collection "plans" have an index each, and equal how many
// documents have the same value in one.
const indexedFields, equal = 6, 100

// findByAll looks for all indexed fields and for one that no document and no other query has: no plan is in the cache.
func findByAll(ctx context.Context, c *mongo.Collection, o ...options.Lister[options.FindOptions]) error {
	filter := bson.D{{Key: fmt.Sprintf("g%d", rand.IntN(1<<30)), Value: nil}}
	for f := range indexedFields {
		filter = append(filter, bson.E{Key: fmt.Sprintf("f%d", f), Value: rand.IntN(documents / equal)})
	}
	cursor, err := c.Database().Collection("plans").Find(ctx, filter, o...)
	if err != nil {
		return err
	}
	return cursor.Close(ctx)
}

// fillPlans inserts the documents and creates the indexes that findByAll can use.
func fillPlans(t *testing.T, c *mongo.Collection) {
	t.Helper()
	plans := c.Database().Collection("plans")
	var all []any
	for i := range documents {
		d := bson.D{{Key: "_id", Value: i}}
		for f := range indexedFields {
			d = append(d, bson.E{Key: fmt.Sprintf("f%d", f), Value: rand.IntN(documents / equal)})
		}
		all = append(all, d)
	}
	_, err := plans.InsertMany(context.Background(), all)
	must(t, err)
	for f := range indexedFields {
		_, err := plans.Indexes().CreateOne(context.Background(), mongo.IndexModel{Keys: bson.D{{Key: fmt.Sprintf("f%d", f), Value: 1}}})
		must(t, err)
	}
}

// address is the server's URL.
var address string

// runGoYCSB executes a workload, as "go-ycsb run mongodb -p name=value …" would.
func runGoYCSB(args []string) error {
	properties := map[string]string{"threadcount": "4", "maxexecutiontime": "10"}
	flags := flag.NewFlagSet(goYCSB, flag.ContinueOnError)
	flags.Func("p", "property", func(text string) error {
		name, value, _ := strings.Cut(text, "=")
		properties[name] = value
		return nil
	})
	if err := flags.Parse(args[2:]); err != nil {
		return err
	}
	var threads, seconds int
	fmt.Sscan(properties["threadcount"], &threads)
	fmt.Sscan(properties["maxexecutiontime"], &seconds)
	address = properties["mongodb.url"]
	client, err := mongo.Connect(options.Client().ApplyURI(address).SetMaxPoolSize(uint64(threads)))
	if err != nil {
		return err
	}
	c, operation := client.Database("goycsb").Collection("usertable"), operations[properties["workload"]]
	fmt.Println("***************** properties *****************")
	for name, value := range properties {
		fmt.Printf("%q=%q\n", name, value)
	}
	fmt.Println("**********************************************")
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(seconds)*time.Second)
	defer cancel()
	var mu sync.Mutex
	var took []time.Duration
	begin := time.Now()
	var clients sync.WaitGroup
	for n := range threads {
		clients.Go(func() {
			for ctx.Err() == nil {
				at := time.Now()
				if err := operation(ctx, c, n); err == nil || errors.Is(err, mongo.ErrNoDocuments) {
					mu.Lock()
					took = append(took, time.Since(at))
					mu.Unlock()
				}
			}
		})
	}
	printTotal := func() {
		mu.Lock()
		defer mu.Unlock()
		if len(took) == 0 {
			return
		}
		sorted := slices.Sorted(slices.Values(took))
		sum := time.Duration(0)
		for _, d := range sorted {
			sum += d
		}
		at := func(p float64) int64 { return sorted[min(len(sorted)-1, int(p*float64(len(sorted))))].Microseconds() }
		elapsed := time.Since(begin).Seconds()
		fmt.Printf("TOTAL  - Takes(s): %.1f, Count: %d, OPS: %.1f, Avg(us): %d, Min(us): %d, Max(us): %d, 50th(us): %d, 90th(us): %d, 95th(us): %d, 99th(us): %d, 99.9th(us): %d, 99.99th(us): %d\n",
			elapsed, len(sorted), float64(len(sorted))/elapsed, (sum / time.Duration(len(sorted))).Microseconds(), at(0), at(1), at(0.5), at(0.9), at(0.95), at(0.99), at(0.999), at(0.9999))
	}
	for second := range seconds {
		time.Sleep(time.Until(begin.Add(time.Duration(second+1) * time.Second)))
		printTotal()
	}
	clients.Wait()
	fmt.Printf("Run finished, takes %s\n", time.Since(begin))
	printTotal()
	return client.Disconnect(context.Background())
}

// goYCSBCommand is a command line of the tool.
func goYCSBCommand(t *testing.T, address, workload, concern string, threads int) []string {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	path := filepath.Join(t.TempDir(), goYCSB)
	must(t, os.Symlink(self, path))
	url := "mongodb://" + address + "/goycsb?" + concern
	return []string{path, "run", "mongodb", "-p", "mongodb.url=" + url, "-p", "workload=" + workload, "-p", fmt.Sprintf("threadcount=%d", threads), "-p", "maxexecutiontime=12", "-p", "measurement.interval=1"}
}

// fillMongoDB inserts the documents.
func fillMongoDB(t *testing.T, client *mongo.Client) {
	t.Helper()
	c := client.Database("goycsb").Collection("usertable")
	var all []any
	for i := range documents {
		all = append(all, bson.D{{Key: "_id", Value: i}, {Key: "k", Value: i}, {Key: "s", Value: rand.IntN(1 << 30)}, {Key: "f", Value: strings.Repeat("x", 400)}})
	}
	_, err := c.InsertMany(context.Background(), all)
	must(t, err)
}
