package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/qpoll/qpoll/bench/internal/load"
	"github.com/qpoll/qpoll/bench/internal/overhead"
	"github.com/qpoll/qpoll/nvme"
	"github.com/qpoll/qpoll/pcie"
	"github.com/qpoll/qpoll/poller"
	"github.com/qpoll/qpoll/tcp"
	"github.com/qpoll/qpoll/tcp/pdu"
)

const addressExample = `-target "trtype:tcp traddr:10.0.0.5 trsvcid:4420 subnqn:NQN"`

// explain makes an error of setting up one line that says what to type
// instead. s may be nil.
func (o *options) explain(err error, s *session) error {
	if err == nil {
		return nil
	}
	var usage *usageError
	if errors.As(err, &usage) || errors.Is(err, errInterrupted) {
		return err
	}
	if errors.Is(err, nvme.ErrAddress) && (s == nil || s.ctrl == nil) {
		return usagef("-target: %v; write %s", oneLine(trimKind(err)), addressExample)
	}
	hint := o.hint(err, s)
	if hint == "" {
		return errors.New(oneLine(err.Error()))
	}
	return fmt.Errorf("%s: %s", oneLine(err.Error()), hint)
}

func (o *options) hint(err error, s *session) string {
	var rejected *tcp.ConnectError
	var digest *tcp.DigestError
	var missing *missingNamespace
	var peer *pdu.PeerError
	switch {
	case errors.As(err, &rejected):
		return rejectedHint(rejected, s)
	case errors.As(err, &peer) && peer.Field() == "DGST":
		return o.wantedDigests()
	case errors.As(err, &digest):
		return "the target does not do that: leave out " + digestFlags(digest) + ", or turn it on there"
	case errors.As(err, &missing):
		return missing.hint()
	case errors.Is(err, load.ErrBlockSize):
		return fmt.Sprintf("give -bs a multiple of %d", s.ns.BlockSize())
	case errors.Is(err, load.ErrRange):
		return "give -range or -bs less"
	case errors.Is(err, pcie.ErrMemlock):
		return memlockHint
	case errors.Is(err, load.ErrWorkload), errors.Is(err, load.ErrBuffers):
		return "give -depth or -bs less"
	case errors.Is(err, overhead.ErrConfig):
		return fmt.Sprintf("give -bs a multiple of %d that fits, or -depth less", s.ns.BlockSize())
	case errors.Is(err, overhead.ErrStuck):
		return "the controller does not answer any more"
	case errors.Is(err, poller.ErrCoreNotAllowed):
		return "choose other -cores"
	case errors.Is(err, nvme.ErrUnsupported) && s != nil && s.ctrl != nil && s.ns != nil:
		return fmt.Sprintf("the controller grants %d I/O queues: give -queues or -cores less", s.ctrl.IOQueues())
	}
	if s != nil && s.endpoint != nil && s.open != nil {
		return localHint(err, s)
	}
	return networkHint(err)
}

// networkHint is for what goes wrong before there is a controller.
func networkHint(err error) string {
	var dns *net.DNSError
	var mine *pdu.Error
	var peer *pdu.PeerError
	switch {
	case errors.As(err, &dns):
		return "give traddr in -target a name that resolves, or an IP address"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there: start a target, or correct traddr and trsvcid in -target"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no way to that host: correct traddr in -target"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nvme.ErrTimeout), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return "nothing answers there: correct traddr and trsvcid in -target, or look at the target and at firewalls"
	case errors.As(err, &mine) && mine.Field == "PFV", errors.As(err, &peer) && peer.Field() == "PFV":
		return "it speaks another version of NVMe/TCP than 1.0 and 1.1 do: correct trsvcid in -target, or update the target"
	case errors.As(err, &mine), errors.Is(err, tcp.ErrPeerClosed), errors.Is(err, syscall.ECONNRESET):
		return "what listens there does not seem to be an NVMe/TCP target: correct traddr and trsvcid in -target"
	}
	return ""
}

// rejectedHint explains the status of a rejected fabrics Connect.
func rejectedHint(e *tcp.ConnectError, s *session) string {
	switch e.Status.Code() {
	case nvme.StatusConnectInvalidHost:
		return "that host may not connect: allow it at the target, or connect as another with hostnqn:NQN in -target"
	case nvme.StatusConnectIncompatibleFormat:
		return "the target speaks another version of NVMe over Fabrics: update it"
	case nvme.StatusConnectControllerBusy:
		return "the target has no controller left: close other connections, or try again later"
	case nvme.StatusConnectInvalidParameters:
		if strings.HasPrefix(e.Parameter.String(), "subsystem NQN") && s != nil {
			return fmt.Sprintf("there is no subsystem %s: correct subnqn in -target", s.address.SubNQN)
		}
		if strings.HasPrefix(e.Parameter.String(), "host NQN") {
			return "correct hostnqn in -target"
		}
		if strings.HasPrefix(e.Parameter.String(), "queue size") {
			return "give -depth less"
		}
	}
	return ""
}

func (e *missingNamespace) hint() string {
	switch len(e.have) {
	case 0:
		return "the controller has no namespaces: add one at the target"
	case 1:
		return fmt.Sprintf("the only one is %d: write -nsid %[1]d", e.have[0])
	}
	const most = 16
	list := make([]int, min(len(e.have), most))
	for i := range list {
		list[i] = int(e.have[i])
	}
	more := ""
	if len(e.have) > most {
		more = " and more"
	}
	return fmt.Sprintf("give -nsid one of %s%s", ranges(list), more)
}

// wantedDigests is for a target that turned a connection away because of the
// digests that it did, or did not, ask for.
func (o *options) wantedDigests() string {
	switch {
	case o.headerDigest && o.dataDigest:
		return "it does not take those digests: leave out -hdgst or -ddgst"
	case o.headerDigest:
		return "it wants other digests: give -ddgst, too"
	case o.dataDigest:
		return "it wants other digests: give -hdgst, too"
	}
	return "it wants digests: give -hdgst, -ddgst or both"
}

func digestFlags(e *tcp.DigestError) string {
	var flags []string
	if e.Header {
		flags = append(flags, "-hdgst")
	}
	if e.Data {
		flags = append(flags, "-ddgst")
	}
	return strings.Join(flags, " and ")
}

// trimKind leaves out what an error of nvme.ParseAddress begins with.
func trimKind(err error) string {
	return strings.ReplaceAll(err.Error(), nvme.ErrAddress.Error()+": ", "")
}

// oneLine keeps text from a peer or a file system from breaking the line.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f }), " ")
}
