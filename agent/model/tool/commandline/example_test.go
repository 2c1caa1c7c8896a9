package commandline_test

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/model/tool/commandline"
	"github.com/benchwatch/benchwatch/agent/model/tool/registry"
)

func ExampleRead() {
	c := commandline.Read(
		[]string{"sudo", "-u", "bench", "bash", "-c", "sysbench oltp_read_write --threads=16 --mysql-password=hunter2 run"},
		registry.Tools, commandline.Env{})
	fmt.Println(c.Title())
	fmt.Println(c.Start[5])
	fmt.Println(c.Redacted[5])
	// Output:
	// oltp_read_write 16 threads localhost:3306
	// sysbench oltp_read_write --threads=16 --mysql-password=hunter2 --report-interval=1 run
	// sysbench oltp_read_write --threads=16 --mysql-password=*** run
}
