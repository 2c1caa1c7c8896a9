// Package host samples machines: the agent's own from procfs, others from their node_exporter. Both
// sources give the same values, so a limit of the generator is found in the same way as a limit of
// a server.
package host

// File is the name of the file with the samples of the run's machines in a run directory. Its
// format is that of the servers' record, see package record.
const File = "host.jsonl"
