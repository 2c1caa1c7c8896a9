package metrics

import (
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/many/retention"
	"github.com/benchwatch/benchwatch/agent/run/marker"
)

var (
	runsWaiting = family("runs_waiting", "Live runs that are not followed because the limit is reached.")
	missedTicks = family("agent_missed_ticks_total",
		"Ticks at which the agent sampled no server because the agent or its machine was stalled. The servers' "+
			"series have gaps there.")
	samplerLate = family("agent_sampler_late_seconds_total",
		"Time by which samples of the servers began late because the agent had no core or its machine was stalled. A "+
			"few milliseconds per sample are normal.")
	dataFree = family("data_free_bytes",
		"Free space of the file system with the data directory. Below 64 MiB, or 5 % of a small one, only the output "+
			"of tools is recorded.")
	dataSize         = family("data_size_bytes", "Size of the file system with the data directory.")
	markerQueue      = family("marker_queue_length", "Markers that wait for delivery to Grafana.")
	markerDeliveries = family("marker_deliveries_total", "Markers by the result of their delivery: delivered, retried, rejected.", "result")
	archivePending   = family("archive_pending_runs", "Closed runs that are not in the archive. Absent without an archive.")
	archiveUploads   = family("archive_uploads_total", "Runs that this agent tried to upload to the archive, by result: uploaded, failed.", "result")
	archiveFailing   = stateFamily("archive_upload_failing", "1 if the last attempt to upload to the archive failed, else 0. Absent without an archive.")
	archiveSuccess   = family("archive_last_upload_timestamp_seconds",
		"When a run was last uploaded to the archive, as Unix time. Absent before the first upload.")
	removedRuns = family("runs_removed_total",
		"Run directories that this agent removed, by the limit of runs.keep that they were beyond: age, count, size. "+
			"Absent without a limit.", "limit")
	removedBytes = family("runs_removed_bytes_total", "Space on the disk of the run directories that this agent removed. Absent without a limit.")
	removalKept  = family("runs_kept_beyond_limit",
		"Run directories beyond a limit of runs.keep that stay: not closed, labelled keep or baseline, or not in the "+
			"archive. Absent without a limit.")
	removalFailures = family("runs_removal_failures_total", "Attempts to remove run directories that failed. Absent without a limit.")
	removalFailing  = stateFamily("runs_removal_failing", "1 if the last attempt to remove run directories failed, else 0. Absent without a limit.")
	peerInfo        = stateFamily("peer_info", "A peer whose runs are mirrored, with its version; value 1. Absent until it has answered.", "peer", "version")
	peerUp          = stateFamily("peer_up", "1 if all new data of the peer's runs could be copied at the last attempt, else 0.", "peer")
	peerSuccess     = family("peer_last_success_timestamp_seconds",
		"When all new data of the peer's runs was last copied, as Unix time. Absent before the first copy.", "peer")
	peerBytes  = family("peer_received_bytes_total", "Bytes of run directories that were received from the peer.", "peer")
	peerErrors = family("peer_errors_total", "Failed attempts to copy from the peer, including failures of single runs.", "peer")
	peerRuns   = family("peer_runs",
		"Runs of the peer by state: live (copied while they last) or refused (not copied, since they are damaged or "+
			"in conflict with another run).", "peer", "state")
	markerTime = family("marker_timestamp_seconds", "Time of a marker, as Unix time.", "run", "text")
)

func (g *Gatherer) uploads() {
	if g.sources.Uploads == nil {
		return
	}
	u := g.sources.Uploads()
	if !u.Enabled {
		return
	}
	g.emit(archivePending, float64(u.Pending))
	g.emit(archiveUploads, float64(u.Uploaded), "uploaded")
	g.emit(archiveUploads, float64(u.Failures), "failed")
	g.emit(archiveFailing, truth(u.Failing))
	if !u.LastSuccess.IsZero() {
		g.emit(archiveSuccess, seconds(u.LastSuccess))
	}
}

func (g *Gatherer) removals() {
	if g.sources.Removals == nil {
		return
	}
	r := g.sources.Removals()
	if !r.Enabled {
		return
	}
	for _, limit := range retention.Reasons {
		g.emit(removedRuns, float64(r.Removed[limit]), string(limit))
	}
	g.emit(removedBytes, float64(r.Bytes))
	g.emit(removalKept, float64(r.Kept))
	g.emit(removalFailures, float64(r.Failures))
	g.emit(removalFailing, truth(r.Failing))
}

func (g *Gatherer) peers() {
	if g.sources.Peers == nil {
		return
	}
	for _, p := range g.sources.Peers() {
		name := label(p.Name)
		if p.Version != "" {
			g.emit(peerInfo, 1, name, label(p.Version))
		}
		g.emit(peerUp, truth(p.Up), name)
		if !p.LastSuccess.IsZero() {
			g.emit(peerSuccess, seconds(p.LastSuccess), name)
		}
		g.emit(peerBytes, float64(p.Bytes), name)
		g.emit(peerErrors, float64(p.Errors), name)
		g.emit(peerRuns, float64(p.Live), name, "live")
		g.emit(peerRuns, float64(p.Refused), name, "refused")
	}
}

func (g *Gatherer) markers() {
	if g.sources.Deliveries != nil {
		d := g.sources.Deliveries()
		g.emit(markerQueue, float64(d.Queued))
		g.emit(markerDeliveries, float64(d.Delivered), "delivered")
		g.emit(markerDeliveries, float64(d.Retried), "retried")
		g.emit(markerDeliveries, float64(d.Rejected), "rejected")
	}
	if g.sources.Points == nil {
		return
	}
	// Two markers of one text are one series: the newest.
	newest := map[[2]string]time.Time{}
	for _, p := range g.sources.Points() {
		key := [2]string{p.Run, markerText(&p)}
		if p.Start.After(newest[key]) {
			newest[key] = p.Start
		}
	}
	for key, at := range newest {
		g.emit(markerTime, seconds(at), key[0], key[1])
	}
}

// markerText is a marker's text as a label: one line.
func markerText(m *marker.Marker) string { return label(strings.Join(strings.Fields(m.Text), " ")) }
