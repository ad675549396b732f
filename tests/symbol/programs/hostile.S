/*
 * Debug information that no compiler writes: 20,000 inlined calls in each other, all over the same code, whose
 * origins lead in a circle; and the claim of a function that it is everywhere.
 */
	.text
	.globl	_start
	.type	_start, @function
_start:
	.fill	4000, 1, 0x90
	.size	_start, . - _start
.Lend:

	.section .debug_abbrev, "", @progbits
	/* 1: compile_unit: low_pc, high_pc, language */
	.uleb128 1, 0x11
	.byte	1
	.uleb128 0x11, 0x01, 0x12, 0x07, 0x13, 0x0b, 0, 0
	/* 2: subprogram: low_pc, high_pc, abstract_origin ref4 */
	.uleb128 2, 0x2e
	.byte	1
	.uleb128 0x11, 0x01, 0x12, 0x07, 0x31, 0x13, 0, 0
	/* 3: inlined_subroutine: the same */
	.uleb128 3, 0x1d
	.byte	1
	.uleb128 0x11, 0x01, 0x12, 0x07, 0x31, 0x13, 0, 0
	/* 4: subprogram without code: abstract_origin ref4 */
	.uleb128 4, 0x2e
	.byte	0
	.uleb128 0x31, 0x13, 0, 0
	.byte	0

	.section .debug_info, "", @progbits
.Lunit:
	.4byte	.Lunit_end - .Lunit - 4
	.2byte	4
	.4byte	.debug_abbrev
	.byte	8
	.uleb128 1
	.8byte	_start, .Lend - _start
	.byte	0x04            /* C++ */
.Lone:
	.uleb128 4
	.4byte	.Ltwo - .Lunit
.Ltwo:
	.uleb128 4
	.4byte	.Lone - .Lunit
	.uleb128 2
	.8byte	_start, .Lend - _start
	.4byte	.Lone - .Lunit
	.rept	20000
	.uleb128 3
	.8byte	_start, .Lend - _start
	.4byte	.Ltwo - .Lunit
	.endr
	.fill	20001, 1, 0
	/* everywhere */
	.uleb128 2
	.8byte	_start - 0x1000, 0x7fffffffffff0000
	.4byte	.Lone - .Lunit
	.byte	0
	.byte	0
.Lunit_end:

	.section .note.GNU-stack, "", @progbits
