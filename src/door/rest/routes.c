#include "door/http/routes.h"

static const struct api_resource *const resources[] = {
	&api_health,
	&api_openapi,
	&api_templates,
	&api_sandboxes,
	&api_lifecycle,
	&api_network,
	&api_exec,
	&api_files,
	&api_connect_exec,
	&api_connect_files,
	&api_processes,
	&api_usage,
	&api_events,
	&api_archive,
	&api_watch,
	&api_connect_trees,
	&api_jobs,
	&api_job_output,
	&api_exec_socket,
	&api_snapshots,
	&api_export,
	&api_connect_upload,
	&api_job_attach,
	&api_ports,
	&api_secrets,
	&api_audit,
	&api_keys,
	&api_approvals,
	&api_run,
	&api_workspaces,
	&api_workspace_archive,
	&api_javascript,
	&api_modules,
	&api_conversations,
	&api_prompts,
};

static const struct api_resource *const mitos_resources[] = {
	&api_mitos_templates, &api_mitos_sandboxes, &api_mitos_exec,
	&api_mitos_files,     &api_mitos_trees,	    &api_mitos_forward,
};

static const struct api_route *route_at(const struct api_resource *const *all, size_t n, size_t i)
{
	for (size_t k = 0; k < n; k++) {
		if (i < all[k]->n)
			return &all[k]->rows[i];
		i -= all[k]->n;
	}
	return NULL;
}

const struct api_route *api_route_at(size_t i)
{
	return route_at(resources, ARRAY_LEN(resources), i);
}

const struct api_route *api_mitos_route_at(size_t i)
{
	return route_at(mitos_resources, ARRAY_LEN(mitos_resources), i);
}
