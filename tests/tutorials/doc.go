// Package tutorials follows the tutorials of the documentation to the letter. `make e2e`
// runs it.
package tutorials
