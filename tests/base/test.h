/* What every unit test here begins with. */
#ifndef TESTS_BASE_TEST_H
#define TESTS_BASE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/types.h>
#include <unistd.h>

/* Root may read and write everything: it becomes somebody else for a while, who has the folder. */
static inline void be_nobody(const char *folder)
{
	if (geteuid() == 0) {
		assert_int_equal(chown(folder, 65534, (gid_t)-1), 0);
		assert_int_equal(seteuid(65534), 0);
	}
}

static inline void be_root_again(void)
{
	if (getuid() == 0)
		assert_int_equal(seteuid(0), 0);
}

#endif
