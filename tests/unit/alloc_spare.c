#include "alloc_fail.h"

#include <stdlib.h>
#include <uv.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);

int alloc_fail_spare_uv(void)
{
	return uv_replace_allocator(__real_malloc, __real_realloc, __real_calloc, free);
}
