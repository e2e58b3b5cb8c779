package quality

import (
	"fmt"
	"math/rand/v2"
)

// pods is a list of pods as the Kubernetes API gives it.
func pods(rng *rand.Rand) string {
	return text(obj("kind", "PodList", "apiVersion", "v1", "metadata", obj("resourceVersion", "81234"),
		"items", many(60, func(i int) any { return pod(rng, i) })))
}

func pod(rng *rand.Rand, i int) object {
	app := pick(rng, "web", "api", "worker", "cache", "batch")
	owned := i%7 != 0
	labels := obj("app", app, "pod-template-hash", hex(rng, 9), "app.kubernetes.io/name", often(rng, 70, app, absent),
		"tier", often(rng, 40, "front", absent))
	meta := obj("name", fmt.Sprintf("%s-%s-%s", app, hex(rng, 9), hex(rng, 5)))
	if owned {
		meta = append(meta, field{"generateName", app + "-"})
	}
	meta = append(meta, obj("namespace", pick(rng, "default", "shop", "kube-system"), "uid", uuid(rng), "resourceVersion", fmt.Sprint(80000+i),
		"creationTimestamp", moment(rng), "labels", labels)...)
	if i%3 == 0 {
		meta = append(meta, field{"annotations", obj("prometheus.io/scrape", "true", "checksum/config", hex(rng, 64))})
	}
	if owned {
		meta = append(meta, field{"ownerReferences", []any{obj("apiVersion", "apps/v1", "kind", pick(rng, "ReplicaSet", "DaemonSet"), "name", app,
			"uid", uuid(rng), "controller", true, "blockOwnerDeletion", true)}})
	}
	meta = append(meta, field{"managedFields", many(2, func(j int) any { return managed(rng, j) })})
	return obj("metadata", meta, "spec", podSpec(rng, app, i), "status", podStatus(rng, app, i))
}

func managed(rng *rand.Rand, i int) object {
	empty := obj()
	if i == 1 {
		return obj("manager", "kubelet", "operation", "Update", "apiVersion", "v1", "time", moment(rng), "fieldsType", "FieldsV1",
			"fieldsV1", obj("f:status", obj("f:conditions", obj(".", empty, `k:{"type":"Ready"}`, obj(".", empty, "f:status", empty, "f:type", empty)),
				"f:phase", empty, "f:podIP", empty, "f:startTime", empty)), "subresource", "status")
	}
	return obj("manager", "kube-controller-manager", "operation", "Update", "apiVersion", "v1", "time", moment(rng), "fieldsType", "FieldsV1",
		"fieldsV1", obj("f:metadata", obj("f:labels", obj(".", empty, "f:app", empty), "f:ownerReferences", obj(".", empty)),
			"f:spec", obj("f:containers", obj(`k:{"name":"main"}`, obj(".", empty, "f:image", empty, "f:name", empty,
				"f:resources", obj(".", empty, "f:limits", obj("f:memory", empty)))), "f:dnsPolicy", empty, "f:restartPolicy", empty)))
}

func probe(rng *rand.Rand) object {
	return obj("httpGet", obj("path", pick(rng, "/healthz", "/ready"), "port", pick[any](rng, 8080, "http"), "scheme", "HTTP"),
		"initialDelaySeconds", often(rng, 50, 5, absent), "timeoutSeconds", 1, "periodSeconds", 10, "successThreshold", 1, "failureThreshold", 3)
}

func container(rng *rand.Rand, app string) object {
	var live, ports, env, limits any = absent, absent, absent, absent
	if rng.IntN(3) > 0 {
		live = probe(rng)
		ports = []any{obj("name", "http", "containerPort", 8080, "protocol", "TCP")}
	}
	if rng.IntN(2) == 0 {
		env = many(1+rng.IntN(3), func(j int) any {
			if j == 0 {
				return obj("name", "NODE", "valueFrom", obj("fieldRef", obj("apiVersion", "v1", "fieldPath", "spec.nodeName")))
			}
			return obj("name", fmt.Sprintf("VAR_%d", j), "value", sentence(rng, 1))
		})
	}
	if rng.IntN(4) > 0 {
		limits = obj("cpu", pick(rng, "500m", "1", "2"), "memory", fmt.Sprintf("%dMi", 128*(1+rng.IntN(6))))
	}
	return obj("name", "main", "image", fmt.Sprintf("registry.example/%s:1.%d.%d", app, rng.IntN(9), rng.IntN(20)),
		"args", often(rng, 50, []string{"--port=8080", "--verbose"}, absent), "ports", ports, "env", env,
		"resources", obj("limits", limits, "requests", obj("cpu", "100m", "memory", fmt.Sprintf("%dMi", 64*(1+rng.IntN(4))))),
		"volumeMounts", []any{obj("name", "kube-api-access", "readOnly", true, "mountPath", "/var/run/secrets")},
		"livenessProbe", live, "readinessProbe", often(rng, 50, probe(rng), absent), "terminationMessagePath", "/dev/termination-log",
		"terminationMessagePolicy", "File", "imagePullPolicy", pick(rng, "IfNotPresent", "Always"),
		"securityContext", often(rng, 30, obj("runAsNonRoot", true, "allowPrivilegeEscalation", false), absent))
}

func podSpec(rng *rand.Rand, app string, i int) object {
	volumes := []any{obj("name", "kube-api-access", "projected", obj("sources", []any{
		obj("serviceAccountToken", obj("expirationSeconds", 3607, "path", "token")),
		obj("configMap", obj("name", "kube-root-ca.crt", "items", []any{obj("key", "ca.crt", "path", "ca.crt")})),
	}, "defaultMode", 420))}
	if i%4 == 0 {
		volumes = append(volumes, obj("name", "tmp", "emptyDir", obj("medium", "Memory")))
	}
	return obj("volumes", volumes, "containers", many(1+rng.IntN(2), func(int) any { return container(rng, app) }), "restartPolicy", "Always",
		"terminationGracePeriodSeconds", 30, "dnsPolicy", "ClusterFirst", "serviceAccountName", pick(rng, "default", app), "serviceAccount", "default",
		"nodeName", often(rng, 90, fmt.Sprintf("node-%d", rng.IntN(6)), absent), "securityContext", obj(), "schedulerName", "default-scheduler",
		"tolerations", many(2, func(j int) any {
			return obj("key", []string{"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}[j], "operator", "Exists", "effect", "NoExecute",
				"tolerationSeconds", often(rng, 80, 300, absent))
		}), "priority", 0, "enableServiceLinks", true, "preemptionPolicy", "PreemptLowerPriority")
}

func podStatus(rng *rand.Rand, app string, i int) object {
	if i%12 == 5 {
		return obj("phase", "Pending", "conditions", []any{obj("type", "PodScheduled", "status", "False", "lastProbeTime", nil,
			"lastTransitionTime", moment(rng), "reason", "Unschedulable", "message", "0/6 nodes are available: insufficient memory.")}, "qosClass", "Burstable")
	}
	ready := i%9 != 2
	status := map[bool]string{true: "True", false: "False"}[ready]
	state := obj("running", obj("startedAt", moment(rng)))
	last := obj()
	if !ready {
		state = obj("waiting", obj("reason", "CrashLoopBackOff", "message", "back-off restarting failed container"))
		last = obj("terminated", obj("exitCode", 1+rng.IntN(2), "reason", "Error", "startedAt", moment(rng), "finishedAt", moment(rng), "containerID", "containerd://"+hex(rng, 64)))
	}
	ip := fmt.Sprintf("10.42.%d.%d", i%6, i)
	return obj("phase", "Running", "conditions", many(4, func(j int) any {
		return obj("type", []string{"Initialized", "Ready", "ContainersReady", "PodScheduled"}[j], "status", map[bool]string{true: status, false: "True"}[j == 1 || j == 2],
			"lastProbeTime", nil, "lastTransitionTime", moment(rng))
	}), "hostIP", fmt.Sprintf("10.0.0.%d", i%6), "podIP", ip, "podIPs", []any{obj("ip", ip)}, "startTime", moment(rng),
		"containerStatuses", []any{obj("name", "main", "state", state, "lastState", last, "ready", ready, "restartCount", rng.IntN(40),
			"image", "registry.example/"+app, "imageID", "registry.example/"+app+"@sha256:"+hex(rng, 64), "containerID", "containerd://"+hex(rng, 64), "started", ready)},
		"qosClass", "Burstable")
}
