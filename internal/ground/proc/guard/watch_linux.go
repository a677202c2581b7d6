package guard

import "github.com/pawl-run/pawl/internal/ground/proc/stage"

// second is in the unit of BootTime.
const second = 1e9

// wakeGrace is how long a guard waits that woke up after the lease had ended. Then it was
// stopped or suspended too, most likely together with pawl, and pawl may find that
// nobody has taken the run.
const wakeGrace = 2 * second

// watched is one run.
type watched struct {
	tag    string
	roots  []openRoot
	killAt int64 // 0: not known yet, or killed already
	until  int64
	grace  bool // it was late, and waits for pawl
}

// openRoot is a Root with its pidfd, which is noFD if there are no pidfds.
type openRoot struct {
	Root

	fd int
}

const noFD = -1

// watch is what a guard knows.
type watch struct {
	runs []*watched
}

// apply notes a message. It takes over the pidfd, and returns those that are of no use
// any more.
func (w *watch) apply(m Message, fd int) (closed []int) {
	r := w.find(m.Tag)
	if r == nil && (m.Event == Extended || m.Event == Started) {
		r = &watched{tag: m.Tag}
		w.runs = append(w.runs, r)
	}
	switch {
	case r == nil:
	case m.Event == Extended:
		r.killAt, r.until, r.grace = m.KillAt, m.Until, false
	case m.Event == Started && !r.has(m.Root):
		r.roots = append(r.roots, openRoot{m.Root, fd})
		return nil
	case m.Event == Ended:
		closed = r.drop(func(o openRoot) bool { return o.Root == m.Root })
	case m.Event == Released:
		closed = r.drop(func(openRoot) bool { return true })
		w.forget(r)
	}
	if fd != noFD {
		closed = append(closed, fd)
	}
	return closed
}

func (w *watch) find(tag string) *watched {
	for _, r := range w.runs {
		if r.tag == tag {
			return r
		}
	}
	return nil
}

func (w *watch) forget(gone *watched) {
	for i, r := range w.runs {
		if r == gone {
			last := len(w.runs) - 1
			w.runs[i], w.runs[last] = w.runs[last], nil
			w.runs = w.runs[:last]
			return
		}
	}
}

func (r *watched) has(root Root) bool {
	for _, o := range r.roots {
		if o.Root == root {
			return true
		}
	}
	return false
}

// drop removes roots and returns their pidfds.
func (r *watched) drop(which func(openRoot) bool) (fds []int) {
	kept := r.roots[:0]
	for _, o := range r.roots {
		switch {
		case !which(o):
			kept = append(kept, o)
		case o.fd != noFD:
			fds = append(fds, o.fd)
		}
	}
	r.roots = kept
	return fds
}

// due returns the runs whose programs are to be killed now, and when to look again, 0
// for never. A run that it has returned is due again only after the next extension.
func (w *watch) due(now int64) (over []*watched, next int64) {
	for _, r := range w.runs {
		if r.killAt == 0 || len(r.roots) == 0 {
			continue
		}
		if now >= r.killAt && now >= r.until && !r.grace {
			r.killAt, r.grace = now+wakeGrace, true
		}
		if now >= r.killAt {
			r.killAt = 0
			over = append(over, r)
			continue
		}
		if next == 0 || r.killAt < next {
			next = r.killAt
		}
	}
	return over, next
}

// inNamespace reports whether the kernel kills the whole tree with its root.
func (r Root) inNamespace() bool { return r.Kind != stage.KindSubreaper }
