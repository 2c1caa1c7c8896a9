package rundir

// A shared runs folder needs a per-thread umask, which macOS does not have. On macOS each user has
// a separate runs folder.

func isShared(string) bool { return false }

func isSharedRun(string) bool { return false }

func makeDir(path string) error { return makeOwnDir(path) }
