#pragma once
/* What `holt doctor` tells of the network that the host is in: how the operator's file, or the
 * environment, says that names are reached. Nothing where neither says anything. */
#include "cli/common/finding.h"
#include "cli/grants/grants.h"

enum { DOCTOR_WAYS = 4, DOCTOR_WAY_TEXT = 512 };

struct doctor_way {
	struct finding p[DOCTOR_WAYS];
	size_t n;
	char text[DOCTOR_WAYS][DOCTOR_WAY_TEXT]; /* private */
};
void doctor_way(struct doctor_way *d);
