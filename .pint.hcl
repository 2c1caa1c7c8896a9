# For pint, which TestPint in tests/rules runs if it is installed.
parser {
  include = ["alerts/.*[.]rules[.]yml", "prometheus/rules/.*[.]yml"]
}
