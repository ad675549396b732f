/* Put under a program (LD_PRELOAD): each of its threads has a megabyte of variables of its own, which its stack has to hold. */
__thread char big_locals[1 << 20];
char *big_locals_here(void);

char *big_locals_here(void)
{
	return big_locals;
}
