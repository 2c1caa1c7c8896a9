// Package engines has nothing but tests, with the tags e2e, versions and mongodb.
package engines
