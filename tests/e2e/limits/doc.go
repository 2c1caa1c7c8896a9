// Package limits tests what is reported to have limited a run, with runs on a real server
// that one thing limits each (`make e2e`).
package limits
