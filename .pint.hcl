# For pint, which reads this where it is started: tests/rules/run.sh does so where pint
# is installed.
parser {
  include = ["alerts/.*[.]rules[.]yml", "prometheus/rules/.*[.]yml"]
}
