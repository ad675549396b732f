/* Symbols of every kind at known places: what names an address and what must not. Filled with one-byte nops. */
	.text
	.globl	_start
	.type	_start, @function
_start:
	.fill	16, 1, 0x90
	.size	_start, 16
/* 16 bytes that belong to nobody */
	.fill	16, 1, 0x90

/* Two names of one function, the plainer one local; and a longer global one. */
	.type	plain, @function
plain:
	.globl	__internal_plain
	.type	__internal_plain, @function
__internal_plain:
	.globl	exported_plain
	.type	exported_plain, @function
exported_plain:
	.fill	16, 1, 0x90
	.size	plain, 16
	.size	__internal_plain, 16
	.size	exported_plain, 16

/* A function with another inside. */
	.globl	outside
	.type	outside, @function
outside:
	.fill	8, 1, 0x90
	.globl	inside
	.type	inside, @function
inside:
	.fill	8, 1, 0x90
	.size	inside, 8
	.fill	16, 1, 0x90
	.size	outside, 32

/* Assembly without sizes: reaches up to the next symbol, and not over the end of its section. */
	.globl	unsized
	.type	unsized, @function
unsized:
	.fill	16, 1, 0x90
	.globl	bare_label
bare_label:
	.fill	16, 1, 0x90
local_label:
	.fill	16, 1, 0x90
	.globl	versioned
	.type	versioned, @function
versioned:
	.fill	16, 1, 0x90
	.size	versioned, 16
	.globl	last
	.type	last, @function
last:
	.fill	16, 1, 0x90

	.section .other, "ax", @progbits
	.fill	32, 1, 0x90

	.section .note.GNU-stack, "", @progbits
