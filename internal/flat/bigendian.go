//go:build armbe || arm64be || m68k || mips || mips64 || mips64p32 || ppc || ppc64 || s390 || s390x || shbe || sparc || sparc64

package flat

// Copying memory is encoding only where memory is little endian. A big-endian
// path would be a second way to write a format that is final, and nobody runs
// it; so there the build fails here, by an undefined name that says why.
var _ = flat_encoding_needs_a_little_endian_machine
