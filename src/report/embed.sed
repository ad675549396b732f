# Turns a text file into lines of a C string literal.
s/[\\"]/\\&/g
s/^/"/
s/$/\\n"/
