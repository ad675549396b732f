/* All that is asked of the store, in one list: address, parameters, who answers. docs/openapi.yaml says the same; a test compares them. */
#include "record/query_routes.h"

#include <stddef.h>

#define PARAMETERS(...) ((const char *const[]){ __VA_ARGS__, "id", NULL })
#define SELECTION "match", "series"
#define RANGE SELECTION, "from", "to"
#define SNAPSHOT RANGE, "at", "mode", "base_match", "base_series", "base_at", "base_from", "base_to"

const struct api_query_route api_query_routes[] = {
	{ "/api/v1/info", (const char *const[]){ "id", NULL }, query_info, QUERY_QUICK },
	{ "/api/v1/labels", PARAMETERS(RANGE), query_labels, QUERY_QUICK },
	{ "/api/v1/label_values", PARAMETERS(RANGE, "name"), query_label_values, QUERY_QUICK },
	{ "/api/v1/series", PARAMETERS(RANGE), query_series, QUERY_QUICK },
	{ "/api/v1/totals", PARAMETERS(RANGE, "step", "metric", "limit"), query_totals, QUERY_QUICK },
	{ "/api/v1/gauges", PARAMETERS(RANGE, "step", "name", "limit"), query_gauges, QUERY_QUICK },
	{ "/api/v1/builds", PARAMETERS(RANGE), query_builds, QUERY_QUICK },
	{ "/api/v1/moments", PARAMETERS("series", "from", "to", "limit"), query_moments, QUERY_QUICK },
	{ "/api/v1/profile",
	  PARAMETERS(SNAPSHOT, "format", "metric", "by", "focus", "ignore", "hide", "show", "show_from", "n", "symbolize"), query_profile,
	  QUERY_HEAVY },
	{ "/api/v1/page",
	  PARAMETERS(SNAPSHOT, "view", "moments", "metric", "all", "max_bytes", "show_allocator", "no_inlines", "symbolize"), query_page,
	  QUERY_HEAVY },
	{ "/api/v1/leaks",
	  PARAMETERS(RANGE, "moments", "metric", "by", "sort", "n", "every", "limit", "fail_above", "focus", "ignore", "format"), query_leaks,
	  QUERY_HEAVY },
	{ "/api/v1/symbols", (const char *const[]){ "id", NULL }, query_symbols, QUERY_QUICK },
	{ "/api/v1/symbols/missing", PARAMETERS("build_id"), query_symbols_missing, QUERY_QUICK },
	{ NULL, NULL, NULL, QUERY_QUICK },
};
