// Package host samples machines: the agent's own by procfs, others by their
// node_exporter. Both give the same values, so that whether the generator, a server or
// neither was the limit is read in the same way.
package host

// File is the name of the file in a run directory that holds what the run's machines did,
// in the format of the servers' record, see package record.
const File = "host.jsonl"
