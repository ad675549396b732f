# Puts shared parts of the pages where a line says "@name@": man/name.part.
/^@[a-z]+@$/ {
	name = $0
	gsub(/@/, "", name)
	file = directory "/" name ".part"
	while ((getline line < file) > 0)
		print line
	close(file)
	next
}
{ print }
