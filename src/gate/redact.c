/* What leaves: the hook redact. */
#include "gate/internal.h"

int gate_redact_open(struct gate *g, struct err *e)
{
	return 0;
}

void gate_redact_close(struct gate *g)
{
}
