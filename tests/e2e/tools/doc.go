// Package tools has nothing but tests, with the tag e2e.
package tools
