# Puts shared parts of the pages where a line says "@name@": man/name.part, which may have such lines, too.
function put(name,   file, line)
{
	file = directory "/" name ".part"
	while ((getline line < file) > 0)
		show(line)
	close(file)
}

function show(line)
{
	if (line ~ /^@[a-z]+@$/)
		put(substr(line, 2, length(line) - 2))
	else
		print line
}

{ show($0) }
