// Package engines has nothing but tests, with the tags e2e and mysql9.
package engines
