# Counts the events of `go test -json` and prints what the failed tests printed, and at the
# end each one with its first messages.
[inputs | fromjson? // {Action: "output", Package: "go", Output: (. + "\n")}] as $events
| [$events[] | select(.Test and .Action == "pass")] as $passed
| [$events[] | select(.Test and .Action == "skip")] as $skipped
| [$events[] | select(.Test and .Action == "fail")] as $failed
| [$failed[].Package] as $explained
| [$events[] | select(.Action == "fail" and (has("Test") | not)) | select(.Package | IN($explained[]) | not)] as $broken
| ($events[]
  | select(.Action == "build-output").Output | rtrimstr("\n")),
  ($events[]
  | select(.Action == "output")
  | select([.Package, .Test] as $key | any($failed[], $broken[]; [.Package, .Test] == $key)).Output | rtrimstr("\n")),
  "",
  ($failed[] as $f
  | "FAIL \($f.Package) \($f.Test)",
    ([$events[] | select(.Action == "output" and .Package == $f.Package and .Test == $f.Test).Output | select(test("^ *([a-z0-9_]+\\.go:[0-9]+: (?!WORK=)|FAIL: )"))][0:3][] | rtrimstr("\n"))),
  ($broken[] | "FAIL \(.Package)"),
  "\($passed | length) passed, \(($failed | length) + ($broken | length)) failed, \($skipped | length) skipped"
