package measure

// StatementCounts are a server's counts of statements since some time.
type StatementCounts struct {
	Executions float64 `json:"executions"`
	// Seconds is the time of all executions in the server, LockSeconds the part in which they
	// waited for table locks.
	Seconds     float64 `json:"seconds"`
	LockSeconds float64 `json:"lock_seconds,omitempty"`
	Errors      float64 `json:"errors,omitempty"`
	// Rows read, sent to the client, and changed.
	RowsExamined float64 `json:"rows_examined,omitempty"`
	RowsSent     float64 `json:"rows_sent,omitempty"`
	RowsAffected float64 `json:"rows_affected,omitempty"`
	// TemporaryTables were created for results; TemporaryDiskTables are those on disk.
	TemporaryTables     float64 `json:"temporary_tables,omitempty"`
	TemporaryDiskTables float64 `json:"temporary_disk_tables,omitempty"`
	// FullScans are executions that read a table without an index.
	FullScans float64 `json:"full_scans,omitempty"`

	// FullJoins are executions that joined a table without an index, SortRows the rows that were sorted, and SortMerges
	// the merge passes of sorts that did not fit into memory.
	FullJoins  float64 `json:"full_joins,omitempty"`
	SortRows   float64 `json:"sort_rows,omitempty"`
	SortMerges float64 `json:"sort_merges,omitempty"`

	// What PostgreSQL counts: PlanSeconds is the part of Seconds for planning, if it is measured, JITSeconds that
	// for compiling. Rows were
	// sent or changed. Blocks were used, BlocksRead are those that were not in shared buffers. TemporaryBytes
	// were written to temporary files or read from them, LogBytes to the log.
	PlanSeconds    float64 `json:"plan_seconds,omitempty"`
	JITSeconds     float64 `json:"jit_seconds,omitempty"`
	Rows           float64 `json:"rows,omitempty"`
	Blocks         float64 `json:"blocks,omitempty"`
	BlocksRead     float64 `json:"blocks_read,omitempty"`
	TemporaryBytes float64 `json:"temporary_bytes,omitempty"`
	LogBytes       float64 `json:"log_bytes,omitempty"`

	// Where the storage is on other servers: StorageSeconds is the time that it computed for the statement, summed over
	// its tasks, QueueSeconds the time that these tasks waited there, BackoffSeconds the pauses before requests were
	// repeated.
	StorageSeconds float64 `json:"storage_seconds,omitempty"`
	QueueSeconds   float64 `json:"queue_seconds,omitempty"`
	BackoffSeconds float64 `json:"backoff_seconds,omitempty"`
}

func (c *StatementCounts) fields() []*float64 {
	return []*float64{&c.Executions, &c.Seconds, &c.LockSeconds, &c.Errors, &c.RowsExamined,
		&c.RowsSent, &c.RowsAffected, &c.TemporaryTables, &c.TemporaryDiskTables, &c.FullScans, &c.FullJoins, &c.SortRows, &c.SortMerges,
		&c.PlanSeconds, &c.JITSeconds, &c.Rows, &c.Blocks, &c.BlocksRead, &c.TemporaryBytes, &c.LogBytes,
		&c.StorageSeconds, &c.QueueSeconds, &c.BackoffSeconds}
}

// Add adds the counts of other.
func (c *StatementCounts) Add(other *StatementCounts) {
	for i, of := range other.fields() {
		*c.fields()[i] += *of
	}
}

// Subtract subtracts earlier counts; false if one of them was larger.
func (c *StatementCounts) Subtract(before *StatementCounts) bool {
	all := c.fields()
	for i, of := range before.fields() {
		if *all[i] < *of {
			return false
		}
		*all[i] -= *of
	}
	return true
}
