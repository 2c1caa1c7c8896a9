package sweep_test

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/many/sweep"
)

func ExamplePlan() {
	threads, _ := sweep.ParseSet("threads=8,16")
	via, _ := sweep.ParseSet("via=direct,proxy")
	sets := []sweep.Set{via, threads}
	command := "sysbench --threads={threads} --mysql-host={via} run"
	if err := sweep.Check(sets, []string{command}); err != nil {
		fmt.Println(err)
		return
	}
	steps, err := sweep.Plan(sets, 1, sweep.Given, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, step := range steps {
		fmt.Println(step.Number, sweep.Fill(command, step.Values))
	}
	// Output:
	// 1 sysbench --threads=8 --mysql-host=direct run
	// 2 sysbench --threads=16 --mysql-host=direct run
	// 3 sysbench --threads=8 --mysql-host=proxy run
	// 4 sysbench --threads=16 --mysql-host=proxy run
}
