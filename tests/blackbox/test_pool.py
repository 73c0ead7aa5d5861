"""The pool of ready sandboxes: hits are told, and none was used before."""

from client import until

LOOK = 'ls -A /workspace /tmp ~ /var/tmp /dev/shm; wc -l < /proc/self/mountinfo; \
  set -- /proc/[0-9]*; echo $#; env | sort'


def test_hits_are_visible(spawn):
    mcp = spawn('--pool', '3')
    until(lambda: mcp.create().info['from_pool'], what='a ready sandbox')
    assert until(lambda: all([mcp.create().info['from_pool'] for _ in range(3)]),
                 what='three ready ones')


def test_without_a_pool_there_are_none(spawn):
    mcp = spawn('--pool', '0')
    assert not any(mcp.create().info['from_pool'] for _ in range(5))


def test_more_than_the_pool_holds(spawn):
    mcp = spawn('--pool', '2')
    calls = [mcp.start_tool('sandbox_create', pool='host') for _ in range(20)]
    ids = {mcp.result(call)['sandbox'] for call in calls}
    assert len(ids) == 20


def test_nothing_is_carried_over(spawn):
    mcp = spawn('--pool', '2')
    fresh = mcp.create().sh(LOOK)
    ids = set()
    for i in range(30):
        sb = mcp.create()
        assert sb.id not in ids
        ids.add(sb.id)
        assert sb.sh(LOOK) == fresh, f'sandbox {i}'
        sb.exec('echo used > /workspace/used; touch /tmp/used ~/used /dev/shm/used; '
                'mkdir -p /var/tmp/used; '
                'rm -f /etc/hosts; sleep 1000 >/dev/null 2>&1 &')
        sb.terminate()


def test_ready_ones_have_what_was_asked_for(spawn):
    mcp = spawn('--pool', '2')
    until(lambda: mcp.create().info['from_pool'], what='a ready sandbox')
    sb = mcp.create(env={'A': 'b'}, cwd='/tmp', disk_mb=2)
    assert sb.sh('echo $A; pwd') == 'b\n/tmp\n'
    assert 'No space left' in sb.exec('head -c 5000000 /dev/zero > f')['stderr']
    until(mcp.create(ttl_seconds=1).gone, what='its end')


def test_the_pool_counts_not_as_sandboxes(spawn):
    mcp = spawn('--pool', '4', '--max-sandboxes', '2')
    mcp.create()
    mcp.create()
    assert mcp.fails('sandbox_create', pool='host')['code'] == 'limit_exceeded'


def test_limits_of_the_command_line_are_the_default(spawn):
    mcp = spawn('--pool', '1', '--memory', '128M', '--disk', '8M', '--pids', '40')
    for _ in range(3):
        limits = mcp.create().info['limits']
        assert (limits['memory_mb'], limits['disk_mb'], limits['pids']) == (128, 8, 40)
