#!/bin/sh
# embed.sh PAGE OUT: an assembler file that makes the bytes of PAGE page_html[] and page_html_size. Written anew whenever PAGE is, so
# that ninja assembles it again.
set -eu
page=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cat >"$2" <<END
	.section .rodata
	.balign 8
	.globl page_html, page_html_size
	.type page_html, %object
	.type page_html_size, %object
page_html_size:
	.quad 2f - 1f
	.size page_html_size, 8
page_html:
1:	.incbin "$page"
2:	.size page_html, 2b - 1b
	.section .note.GNU-stack, "", %progbits
END
