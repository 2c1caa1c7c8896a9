package cause

// Limit is what can limit a run: a resource, a wait, or something else that clients spend their time on.
type Limit string

// The limits that package limits finds.
const (
	ServerCPU    Limit = "CPU of a server's machine"
	SharedCPU    Limit = "CPU of generator and servers on one machine"
	GeneratorCPU Limit = "CPU of the generator's machine"
	ToolCPU      Limit = "CPU of the tool"
	ProcessCPU   Limit = "CPU of a server"
	OneCore      Limit = "one core of the generator's machine"
	ServerCore   Limit = "one core of a server"
	Clients      Limit = "too few clients"
	RowLocks     Limit = "row locks"
	Locks        Limit = "table or metadata locks"
	UserLocks    Limit = "user-level locks"
	Sleep        Limit = "sleep in the server"
	ThreadPool   Limit = "thread pool"
	State        Limit = "another wait in the server"
	Latches      Limit = "latches within the server"
	FlowControl  Limit = "flow control"
	Replication  Limit = "synchronous replication"
	Commit       Limit = "commits"
	Disk         Limit = "disk"
	Pool         Limit = "buffer pool"
	Checkpoint   Limit = "checkpoints"
	Purge        Limit = "purge"
	Connections  Limit = "max_connections"
	Ports        Limit = "ports of the generator"
	Files        Limit = "open files of the generator"
	Network      Limit = "network"
	RoundTrip    Limit = "round trip"
	Outside      Limit = "network, proxy or pause of the tool"
	ProxyQueue   Limit = "queue of a proxy"
	ProxyThread  Limit = "one thread of a proxy"
	Steal        Limit = "other virtual machines"
	OtherLoad    Limit = "another load on the servers"
	Neighbours   Limit = "other programs on the machine"
	Rate         Limit = "queueing before the tool's rate"

	// Unlimited replaces a limit if the run reached its configured rate, Unknown if nothing is known to explain most of
	// the clients' time.
	Unlimited Limit = "no limit"
	Unknown   Limit = "not known"
)

// Groups of limits that have causes in common.
var (
	// CPU are the limits of cores on which servers run. What servers need of them also decides how long they wait for
	// other programs.
	CPU = []Limit{ServerCPU, SharedCPU, ProcessCPU, ServerCore, Neighbours}
	// Statements are the limits to which expensive statements lead.
	Statements = []Limit{ServerCPU, SharedCPU, ProcessCPU, ServerCore, Neighbours, Disk, Pool, Latches}
)
