package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/pawl-run/pawl/internal/ground/lazyregexp"
	"github.com/pawl-run/pawl/internal/record/store"
	"github.com/pawl-run/pawl/internal/rules/loop"
)

// How River is used. A job lives only until somebody takes its run, for Gap at most.
const (
	fetchPause = 10 * time.Millisecond // at least, between fetches of jobs
	fetchGap   = time.Minute           // between fetches that nobody asked for; the look at the rows does not wait for them
	keepJobs   = time.Hour             // after their end, for people who look at them
	alive      = time.Minute           // a node that was not seen for so long gets no hints
	stopTime   = 5 * time.Second       // at most, for River to end
)

// Hint is a job: it says that a run was queued. No id of a job is kept anywhere.
type Hint struct {
	Run   string `json:"run"`
	Fence int64  `json:"fence"` // of the run, when the hint was made
}

// Kind is the name of such jobs.
func (Hint) Kind() string { return "run" }

// River is a queue of several nodes on one PostgreSQL. Hints reach those nodes that may
// execute a run through queues of River; runs without a hint are found by Gap's look at the
// rows, as in Local.
type River struct {
	*Local

	client *river.Client[pgx.Tx]
	log    *slog.Logger
}

// Options of NewRiver.
type Options struct {
	Store   *store.Store
	Node    loop.Node
	Now     func() time.Time // waits are measured by it
	Workers int              // that call Take
	Log     *slog.Logger
}

// NewRiver starts a queue of a node. Stop ends it.
func NewRiver(ctx context.Context, o Options) (*River, error) {
	q := &River{Local: NewLocal(o.Store, o.Node.ID, o.Now), log: o.Log}
	q.hints = Gap
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, &hintWorker{queue: q}); err != nil {
		return nil, fmt.Errorf("start the queue: %w", err)
	}
	queues := map[string]river.QueueConfig{}
	for _, name := range append(labelQueues(o.Node.Labels), anyQueue, nodeQueue(o.Node.ID)) {
		queues[name] = river.QueueConfig{MaxWorkers: o.Workers}
	}
	client, err := river.NewClient(riverpgxv5.New(o.Store.PostgresPool()), &river.Config{
		Queues: queues, Workers: workers, FetchCooldown: fetchPause, FetchPollInterval: fetchGap, MaxAttempts: 1,
		CompletedJobRetentionPeriod: keepJobs, CancelledJobRetentionPeriod: keepJobs, DiscardedJobRetentionPeriod: keepJobs,
		Logger: o.Log,
	})
	if err == nil {
		q.client = client
		err = client.Start(context.WithoutCancel(ctx))
	}
	if err != nil {
		return nil, fmt.Errorf("start the queue: %w", err)
	}
	return q, nil
}

// anyQueue has hints for runs without labels that several nodes may execute.
const anyQueue = river.QueueDefault

// nodeQueue has hints for runs that only one node may execute.
func nodeQueue(node string) string { return queueName("node", node) }

// labelQueues have hints for runs with labels that several nodes may execute.
func labelQueues(labels []string) []string {
	names := make([]string, len(labels))
	for i, l := range labels {
		names[i] = queueName("label", l)
	}
	return names
}

var plainName = lazyregexp.New(`^[a-z0-9]+([_-][a-z0-9]+)*$`)

// queueName makes a name for a queue that River accepts, and that people read if it can be.
func queueName(kind, name string) string {
	if len(name) > 40 || !plainName.MatchString(name) {
		sum := sha256.Sum256([]byte(name))
		name = hex.EncodeToString(sum[:16])
	}
	return kind + "-" + name
}

// Hint tells the nodes that may execute them of runs that the transaction has queued.
func (q *River) Hint(ctx context.Context, tx *store.Tx, runs []loop.Run) error {
	ids := make([]string, len(runs))
	for i, run := range runs {
		ids[i] = run.ID
	}
	nodes, err := tx.NodesFor(ctx, alive, ids...)
	if err != nil {
		return fmt.Errorf("find nodes for queued runs: %w", err)
	}
	var jobs []river.InsertManyParams
	for _, run := range runs {
		if queue := queueFor(run, nodes[run.ID]); queue != "" {
			jobs = append(jobs, river.InsertManyParams{Args: Hint{run.ID, run.Fence}, InsertOpts: &river.InsertOpts{Queue: queue}})
		}
	}
	if len(jobs) == 0 {
		return nil
	}
	if _, err := q.client.InsertManyFastTx(ctx, tx.Postgres(), jobs); err != nil {
		return fmt.Errorf("hint at queued runs: %w", err)
	}
	return nil
}

// queueFor chooses the queue for a hint at a run, which those nodes may execute. It is
// empty if there are no such nodes.
func queueFor(run loop.Run, nodes []string) string {
	switch {
	case len(nodes) == 0:
		return ""
	case len(nodes) == 1:
		return nodeQueue(nodes[0])
	case len(run.NodeLabels) > 0: // Whoever gets it and lacks another label passes it on.
		return labelQueues(run.NodeLabels)[0]
	}
	return anyQueue
}

// Stop ends all Takes, those that wait too. What was taken may be finished.
func (q *River) Stop() {
	q.Local.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if err := q.client.StopAndCancel(ctx); err != nil {
		q.log.Warn("the queue has not ended", slog.String("error", err.Error()))
	}
}

// hintWorker does what a job says.
type hintWorker struct {
	river.WorkerDefaults[Hint]

	queue *River
}

// Work offers the run of a hint to those who call Take, for as long as the look at the
// rows leaves it to hints. A job never fails: whatever happens to it, a look finds the run.
func (w *hintWorker) Work(ctx context.Context, job *river.Job[Hint]) error {
	q := w.queue
	run, elsewhere, err := q.find(ctx, job)
	if ctx.Err() != nil {
		return river.JobSnooze(0) // Another node may have it at once.
	}
	if err != nil {
		q.log.WarnContext(ctx, "a hint is lost", slog.String("run", job.Args.Run), slog.String("error", err.Error()))
		return nil
	}
	if elsewhere != "" {
		_, err := q.client.Insert(ctx, job.Args, &river.InsertOpts{Queue: nodeQueue(elsewhere)})
		if err != nil {
			q.log.WarnContext(ctx, "a hint is lost", slog.String("run", job.Args.Run), slog.String("error", err.Error()))
		}
		return nil
	}
	if run.ID == "" {
		return nil
	}
	told := q.offer(run)
	if told == nil {
		return nil
	}
	timer := time.NewTimer(Gap)
	defer timer.Stop()
	select {
	case <-told:
		return nil
	case <-timer.C:
		q.withdraw(run)
		return nil
	case <-ctx.Done():
		q.withdraw(run)
		return river.JobSnooze(0)
	}
}

// find reads the run of a hint. It is zero if nobody has to execute it any more. If this
// node may not, find returns one that may; one that got it from such a node drops it.
func (q *River) find(ctx context.Context, job *river.Job[Hint]) (run loop.Run, elsewhere string, err error) {
	err = q.store.View(ctx, func(r *store.Reader) error {
		run, err = r.QueuedRun(ctx, q.node, job.Args.Run)
		if err == nil || !errors.Is(err, loop.ErrNotFound) || job.Queue == nodeQueue(q.node) {
			return err
		}
		queued, err := r.Run(ctx, job.Args.Run)
		if err != nil || queued.State != loop.RunQueued {
			return err
		}
		nodes, err := r.NodesFor(ctx, alive, job.Args.Run)
		if list := nodes[job.Args.Run]; err == nil && len(list) > 0 {
			elsewhere = list[job.ID%int64(len(list))]
		}
		return err
	})
	if errors.Is(err, loop.ErrNotFound) {
		return loop.Run{}, "", nil
	}
	if run.Fence != job.Args.Fence {
		run = loop.Run{}
	}
	return run, elsewhere, err
}
