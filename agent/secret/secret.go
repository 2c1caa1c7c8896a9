// Package secret keeps passwords out of what benchwatch stores, shows or
// sends.
package secret

// Blank stands where a secret was.
const Blank = "***"
