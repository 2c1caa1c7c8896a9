package cause

import "testing"

// TestDeclaredTwice guards that two declarations of one thing stop the program when it starts.
func TestDeclaredTwice(t *testing.T) {
	for name, e := range map[string]Explanation{
		"causes":   {Causes: []Cause{{Name: "a"}, {Name: "a"}}},
		"programs": {Programs: []string{"p", "p"}},
		"waits":    {Waits: []Wait{{Class: "c", State: "s"}, {Class: "c", State: "s"}}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			Declare(e)
		}()
	}
}
