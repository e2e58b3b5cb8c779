package stages

import "slices"

// nests adds the report of a pipeline that a call runs to the report of the stage. The former grows until over is called.
func (m *Meter) nests(stages func() []StageReport) (over func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running = append(m.running, &stages)
	return func() {
		last := stages()
		m.mu.Lock()
		defer m.mu.Unlock()
		m.running = slices.DeleteFunc(m.running, func(f *func() []StageReport) bool { return f == &stages })
		m.ran = added(m.ran, last)
	}
}

// inner is the report of the pipelines that calls have run and run now, summed up.
func (m *Meter) inner() []StageReport {
	m.mu.Lock()
	sum, running := m.ran, slices.Clone(m.running)
	m.mu.Unlock()
	for _, stages := range running {
		sum = added(sum, (*stages)())
	}
	return inside(sum, m.step.place)
}

// inside returns reports with the places that stages have within another one. Windows stay inside.
func inside(list []StageReport, at Place) (placed []StageReport) {
	for _, s := range list {
		s.Place, s.Window = s.Place.In(at), nil
		s.Stages = inside(s.Stages, at)
		placed = append(placed, s)
	}
	return placed
}

// added returns the sum of the reports of two runs of a pipeline. Where they are of different ones, both are there.
func added(sum, more []StageReport) []StageReport {
	same := func(a, b StageReport) bool { return a.Place == b.Place && a.Label == b.Label }
	if !slices.EqualFunc(sum, more, same) {
		return append(slices.Clone(sum), more...)
	}
	list := slices.Clone(sum)
	for i := range list {
		list[i].add(more[i])
	}
	return list
}

// add counts what another run of the stage has done.
func (s *StageReport) add(o StageReport) {
	for _, n := range []struct {
		sum  *int64
		more int64
	}{
		{&s.Items, o.Items},
		{&s.Calls, o.Calls},
		{&s.Refused, o.Refused},
		{&s.Unknown, o.Unknown},
		{&s.Returned, o.Returned},
		{&s.BytesIn, o.BytesIn},
		{&s.BytesOut, o.BytesOut},
		{&s.OK, o.OK},
		{&s.Failed, o.Failed},
		{&s.Skipped, o.Skipped},
		{&s.Retried, o.Retried},
		{&s.Retries, o.Retries},
		{&s.Shared, o.Shared},
		{&s.Resumed, o.Resumed},
		{&s.Pages, o.Pages},
		{&s.Fetched, o.Fetched},
	} {
		*n.sum += n.more
	}
	s.Millis, s.Busy = s.Millis+o.Millis, s.Busy+o.Busy
	s.Untaken, s.More, s.Complete = s.Untaken || o.Untaken, s.More || o.More, s.Complete && o.Complete
	s.LeftOut, s.Notes = union(s.LeftOut, o.LeftOut), union(s.Notes, o.Notes)
	groups := failureGroups{others: s.OtherMessages + o.OtherMessages}
	for _, g := range slices.Concat(s.Messages, o.Messages) {
		groups.add(g.Text, g.Count)
	}
	s.Messages, s.OtherMessages = groups.most(shownMessages)
	s.Stages = added(s.Stages, o.Stages)
}

// union returns the texts of both lists, once each, at most [maxLeftOut].
func union(a, b []string) []string {
	list := slices.Clone(a)
	for _, text := range b {
		if len(list) < maxLeftOut && !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
}
