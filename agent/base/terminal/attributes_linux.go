package terminal

import "golang.org/x/sys/unix"

// The requests that read and change a terminal's attributes.
const getAttributes, setAttributes = unix.TCGETS, unix.TCSETS
