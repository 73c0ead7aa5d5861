#include "door/rest/view.h"

static const struct field view_fields[] = {
	VIEW_ROWS("id", "template_id", "fork_time_ms", "timeout_seconds"),
};
const struct field_table api_sandbox_table = FIELD_TABLE(struct sandbox_view, view_fields);
