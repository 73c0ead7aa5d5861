#include <assert.h>

#include "box/host/box.h"
#include "box/wire/project.h"

static_assert(ARRAY_LEN(project_entries) <= PROJECT_NAMES_MAX, "each may be a name at the top");

size_t box_project_names(struct str ret[PROJECT_NAMES_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(project_entries); i++) {
		if (!strchr(project_entries[i].path, '/') && !project_entries[i].bare)
			ret[n++] = str_of(project_entries[i].path);
	}
	return n;
}
