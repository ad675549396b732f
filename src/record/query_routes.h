/* What answers the routes that read the store: each fills q->out (docs/openapi.yaml). */
#ifndef RECORD_QUERY_ROUTES_H
#define RECORD_QUERY_ROUTES_H

#include "record/api_private.h"

/* query_series.c */
query_run query_info, query_labels, query_label_values, query_series, query_builds, query_moments;
/* query_totals.c */
query_run query_totals, query_gauges;
/* query_profile.c, query_page.c, query_leaks.c */
query_run query_profile, query_page, query_leaks;
/* symbols_api.c */
query_run query_symbols, query_symbols_missing;

#endif
