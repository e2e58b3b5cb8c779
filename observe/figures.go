package observe

import "time"

// Figures sum up the calls of a server since the gateway has started.
type Figures struct {
	Calls, Errors int64

	// P50 and P95 are times within which half of the calls, and 95 of 100, have ended. They are as exact as the buckets of the
	// metric; 0: there were no calls.
	P50, P95 time.Duration
}

// Figures returns the figures of the servers that were called, by their names in metrics.
func (m *Metrics) Figures() map[string]Figures {
	all := map[string]Figures{}
	families, err := m.calling.Gather()
	if err != nil { // cannot be: they are two metrics of ours
		return all
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range metric.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			f := all[labels["server"]]
			if h := metric.GetHistogram(); h != nil {
				bounds, counts := []float64{}, []uint64{}
				for _, b := range h.GetBucket() {
					bounds, counts = append(bounds, b.GetUpperBound()), append(counts, b.GetCumulativeCount())
				}
				f.P50, f.P95 = quantile(0.5, h.GetSampleCount(), bounds, counts), quantile(0.95, h.GetSampleCount(), bounds, counts)
			} else {
				n := int64(metric.GetCounter().GetValue())
				if f.Calls += n; labels["code"] != codeOK {
					f.Errors += n
				}
			}
			all[labels["server"]] = f
		}
	}
	return all
}

// Label returns the name of a server in [Metrics.Figures].
func (m *Metrics) Label(server string) string { return m.servers.label(server) }

// quantile estimates the time within which a part of the calls have ended, as Prometheus does: evenly within a bucket. What is
// beyond the last bucket took as long as its bound at least.
func quantile(part float64, total uint64, bounds []float64, counts []uint64) time.Duration {
	wanted := part * float64(total)
	below, from := uint64(0), 0.0
	for i, bound := range bounds {
		if total > 0 && float64(counts[i]) >= wanted {
			within := (wanted - float64(below)) / float64(max(1, counts[i]-below))
			return time.Duration((from + within*(bound-from)) * float64(time.Second))
		}
		below, from = counts[i], bound
	}
	return time.Duration(from * float64(min(1, total)) * float64(time.Second))
}
