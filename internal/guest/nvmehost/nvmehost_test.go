package nvmehost

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/qpoll/qpoll/internal/guest"
)

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		cfg  ConnectConfig
		want string
	}{
		{ConnectConfig{NQN: "nqn.x", Trsvcid: 4420}, "transport=tcp,traddr=127.0.0.1,trsvcid=4420,nqn=nqn.x"},
		{
			ConnectConfig{
				NQN: "nqn.x", Traddr: "10.0.2.2", Trsvcid: 5000, HostTraddr: "10.0.2.15", HostIface: "eth0",
				HostNQN: "nqn.h", HostID: "id", NrIOQueues: 2, NrWriteQueues: 1, NrPollQueues: 3, QueueSize: 64,
				HeaderDigest: true, DataDigest: true, DisableSQFlow: true, DuplicateConnect: true,
				KeepAlive: 5 * time.Second, ReconnectDelay: time.Second, CtrlLoss: Forever, FastIOFail: 3 * time.Second,
				Options: map[string]string{"tos": "4", "discovery": ""},
			},
			"transport=tcp,traddr=10.0.2.2,trsvcid=5000,nqn=nqn.x,host_traddr=10.0.2.15,host_iface=eth0,hostnqn=nqn.h,hostid=id," +
				"nr_io_queues=2,nr_write_queues=1,nr_poll_queues=3,queue_size=64,hdr_digest,data_digest,disable_sqflow," +
				"duplicate_connect,keep_alive_tmo=5,reconnect_delay=1,ctrl_loss_tmo=-1,fast_io_fail_tmo=3,discovery,tos=4",
		},
	} {
		if got, err := c.cfg.options(); got != c.want || err != nil {
			t.Errorf("got  %s, %v\nwant %s", got, err, c.want)
		}
	}
}

func TestOptionsErrors(t *testing.T) {
	for _, c := range []ConnectConfig{
		{Trsvcid: 1}, {NQN: "x"}, {NQN: "x", Trsvcid: 65536}, {NQN: "x,nr_io_queues=1", Trsvcid: 1},
		{NQN: "x", Trsvcid: 1, KeepAlive: time.Millisecond}, {NQN: "x", Trsvcid: 1, CtrlLoss: -2},
		{NQN: "x", Trsvcid: 1, Options: map[string]string{"a": "b\n"}},
	} {
		if got, err := c.options(); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: got %q, %v", c, got, err)
		}
	}
}

func TestParseAnswer(t *testing.T) {
	if i, c, err := parseAnswer("instance=3,cntlid=65519\n"); i != 3 || c != 65519 || err != nil {
		t.Errorf("got %d, %d, %v", i, c, err)
	}
	for _, bad := range []string{"", "instance=-\n", "instance=1,cntlid=70000", "transport=%s"} {
		if i, c, err := parseAnswer(bad); err == nil {
			t.Errorf("%q: got %d, %d", bad, i, c)
		}
	}
}

func TestParseControllers(t *testing.T) {
	files := map[string]guest.GlobFile{}
	add := func(dir string, attrs ...string) {
		for i := 0; i < len(attrs); i += 2 {
			files[classDir+"/"+dir+"/"+attrs[i]] = guest.GlobFile{Data: attrs[i+1]}
		}
	}
	add("nvme10", "state", "connecting", "subsysnqn", "nqn.b", "transport", "tcp")
	add("nvme2", "state", "live", "subsysnqn", "nqn.a", "hostnqn", "nqn.h", "transport", "tcp",
		"address", "traddr=127.0.0.1,trsvcid=4420", "cntlid", "7", "queue_count", "3", "sqsize", "63")
	add("nvme2/nvme0c2n10", "nsid", "12", "ana_state", "optimized", "ana_grpid", "2")
	add("nvme2/nvme0c2n2", "nsid", "2", "ana_state", "inaccessible", "ana_grpid", "1")
	want := []ControllerInfo{
		{
			Name: "nvme2", State: Live, Transport: "tcp", Address: "traddr=127.0.0.1,trsvcid=4420", NQN: "nqn.a",
			HostNQN: "nqn.h", Cntlid: 7, QueueCount: 3, SQSize: 63,
			Paths: []Path{
				{Name: "nvme0c2n2", NSID: 2, ANAState: "inaccessible", ANAGroup: 1},
				{Name: "nvme0c2n10", NSID: 12, ANAState: "optimized", ANAGroup: 2},
			},
		},
		{Name: "nvme10", State: Connecting, Transport: "tcp", NQN: "nqn.b"},
	}
	if got := parseControllers(files); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
