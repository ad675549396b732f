/* Why a process may not be traced, and what to do: one sentence for each reason. */
#ifndef ATTACH_PERMISSION_H
#define ATTACH_PERMISSION_H

#include <sys/types.h>

#include "base/error.h"

/* After PTRACE_SEIZE failed with that errno; returns E_IO. */
int permission_refused(pid_t process, int reason, struct error *err);

/* E_UNSUPPORTED when somebody traces it, it is stopped, or it can't be called into; asks /proc only. */
int permission_check(pid_t process, struct error *err);

#endif
