package rundir

// A shared runs folder depends on a umask of one thread, which macOS does not have:
// there each user has a runs folder.

func isShared(string) bool { return false }

func isSharedRun(string) bool { return false }

func makeDir(path string) error { return makeOwnDir(path) }
