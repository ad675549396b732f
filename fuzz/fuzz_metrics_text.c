/* Metrics of strangers: finite numbers under known names, each name once; the same whatever follows a whole text of lines. */
#include "record/metrics_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct metrics_text m = { .n = 0 }, again = { .n = 0 };
	struct error err = { 0 };
	char *text = malloc(n + 2);
	if (!text)
		return 0;
	memcpy(text, data, n);
	memcpy(text + n, "\n#", 2);
	int failed = metrics_text_read((const char *)data, n, &m, &err);
	if (failed && (failed != E_FORMAT || !err.text[0] || strchr(err.text, '\n')))
		abort();
	if (m.n > STORE_GAUGES_MAX || m.started_ms < 0)
		abort();
	for (size_t i = 0; i < m.n; i++) {
		if (!isfinite(m.gauges[i].value))
			abort();
		for (size_t k = 0; k < i; k++)
			if (strcmp(m.gauges[i].name, m.gauges[k].name) == 0)
				abort();
	}
	if (metrics_text_read(text, n + 2, &again, &err) != failed || again.n != m.n || again.started_ms != m.started_ms)
		abort();
	free(text);
	return 0;
}
