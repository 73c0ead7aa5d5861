#include "mcp/message/profile.h"

#include "base/mem.h"

/* Oldest first. 2024-11-05 does not mention batches, but JSON-RPC has them and its clients sent
 * them. 2025-03-26 requires servers to accept them; later revisions have none. */
static const struct mcp_profile profiles[] = {
	{
		.version = "2024-11-05",
		.batch = true,
	},
	{
		.version = "2025-03-26",
		.batch = true,
		.annotations = true,
		.audio = true,
		.progress_message = true,
	},
	{
		.version = "2025-06-18",
		.annotations = true,
		.audio = true,
		.progress_message = true,
		.title = true,
		.structured = true,
		.meta = true,
		.links = true,
		.context = true,
		.form = true,
	},
	{
		.version = "2025-11-25",
		.annotations = true,
		.audio = true,
		.progress_message = true,
		.title = true,
		.structured = true,
		.meta = true,
		.links = true,
		.context = true,
		.form = true,
		.url = true,
		.icons = true,
		.old_tasks = true,
	},
	{
		.version = "2026-07-28",
		.modern = true,
		.annotations = true,
		.audio = true,
		.progress_message = true,
		.title = true,
		.structured = true,
		.any_structured = true,
		.meta = true,
		.links = true,
		.context = true,
		.form = true,
		.url = true,
		.icons = true,
	},
};

const struct mcp_profile *mcp_profile_find(struct str version)
{
	for (size_t i = ARRAY_LEN(profiles); i-- > 0;) {
		if (str_is(version, profiles[i].version))
			return &profiles[i];
	}
	return NULL;
}

const struct mcp_profile *mcp_profile_at(size_t i)
{
	return i < ARRAY_LEN(profiles) ? &profiles[i] : NULL;
}

const struct mcp_profile *mcp_profile_latest(void)
{
	const struct mcp_profile *latest = NULL;

	for (size_t i = 0; i < ARRAY_LEN(profiles) && !profiles[i].modern; i++)
		latest = &profiles[i];
	return latest;
}
