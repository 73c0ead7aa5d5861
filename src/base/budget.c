#include "base/budget.h"

#include <assert.h>

int budget_take(struct budget *b, size_t n, struct err *e)
{
	if (!b)
		return 0;
	if (b->used > b->max || n > b->max - b->used)
		return err_set(e, ERR_LIMIT, "more than %zu bytes would have to be kept at once",
			       b->max);
	b->used += n;
	return 0;
}

void budget_give(struct budget *b, size_t n)
{
	if (!b)
		return;
	assert(b->used >= n);
	b->used -= n;
}
