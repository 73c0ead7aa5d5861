/* GET /v1/events: what happened to sandboxes. */
#include "door/http/common.h"
#include "op/event.h"

static void events_tell(struct call *c, const void *event)
{
	exchange_write(c, &event_view_table, event);
}

static const struct api_route rows[] = {
	{ .id = "events",
	  .op = &event_list_op,
	  .projected = true,
	  .tell = events_tell,
	  .method = HTTP_GET,
	  .path = "/v1/events",
	  .lines = &event_view_table,
	  .errors = API_MAY(TOO_MANY_STREAMS) },
};
const struct api_resource api_events = API_RESOURCE(rows);
