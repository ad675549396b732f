/* The state of jemalloc, profile and endpoint, as JSON and for Prometheus. Into buffers that are there already: nothing is allocated. */
#ifndef AGENT_METRICS_H
#define AGENT_METRICS_H

#include "agent/agent.h"
#include "base/buf.h"

/* One object: docs/json.md. */
void status_json(struct agent *a, struct buf *out);
/* Text format 0.0.4. */
void metrics_text(struct agent *a, struct buf *out);

#endif
