/* Needs no headers: for machines whose libraries are not here. */
int table[64];

__attribute__((noinline)) int first(int n)
{
	for (int i = 0; i < n; i++)
		table[i & 63] += i * n;
	return table[n & 63];
}

static __attribute__((noinline)) int second(int n)
{
	return first(n) * 3 + table[1];
}

int third(int n)
{
	return second(n) + second(n + 1);
}
