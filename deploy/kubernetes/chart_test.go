package kubernetes

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

var rewrite = flag.Bool("rewrite", false, "rewrite volley.yaml")

// plain is what the chart makes without values of anybody's: for who has no Helm.
const plain = "volley.yaml"

// rendered is what the chart makes of values, by file.
func rendered(t *testing.T, values map[string]any) (string, error) {
	t.Helper()
	c, err := loader.Load("volley")
	if err != nil {
		t.Fatal(err)
	}
	with, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: "volley", Namespace: "volley",
		IsInstall: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(c, with)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if text := strings.TrimSpace(files[name]); strings.HasSuffix(name, ".yaml") && text != "" {
			fmt.Fprintf(&out, "---\n%s\n", text)
		}
	}
	return out.String(), nil
}

// objects are those of manifests, read as the API's server does that is told to be strict: no field may be unknown, of
// another type, or there twice.
func objects(manifests string) (out []runtime.Object, err error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, networkingv1.AddToScheme,
		policyv1.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	for text := range strings.SplitSeq(manifests, "---\n") {
		if strings.TrimSpace(text) == "" {
			continue
		}
		o, _, err := decoder.Decode([]byte(text), nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%w in\n%s", err, text)
		}
		out = append(out, o)
	}
	return out, nil
}

// TestTheManifestsAreThoseOfTheChart: volley.yaml is what it makes by itself.
func TestTheManifestsAreThoseOfTheChart(t *testing.T) {
	text, err := rendered(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	text = "# Made from the chart: go test . -rewrite\n" + text
	if *rewrite {
		if err := os.WriteFile(plain, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(plain)
	if err != nil || string(have) != text {
		t.Errorf("%s is not what the chart makes: go test . -rewrite (%v)", plain, err)
	}
}

// TestWhatTheAPITakes of the chart with several values: all objects are of the API's types, selectors select what they
// are for, and commands have the flags that they are given.
func TestWhatTheAPITakes(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "volley")
	build := exec.Command("go", "build", "-o", binary, "./cmd/volley")
	build.Dir, build.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, text := range map[string]string{
		"without": "{}",
		"one":     "{drivers: {count: 1, storage: {class: fast}}, networkPolicy: {enabled: false}}",
		"all": `
image: {repository: registry.example/volley, tag: v1, pullSecrets: [{name: registry}]}
drivers:
  count: 5
  flags: [--log-level=debug]
  nodeSelector: {pool: drivers}
  tolerations: [{key: drivers, operator: Exists, effect: NoSchedule}]
executors:
  replicas: 40
  flags: [--labels=zone=a]
  nodeSelector: {pool: executors}
  tolerations: [{key: executors, operator: Exists}]
  volumes: [{name: data, nfs: {server: nfs.example, path: /data}}]
  volumeMounts: [{name: data, mountPath: /data, readOnly: true}]
networkPolicy: {clients: {volley: client}, monitoring: {name: monitoring}}
`} {
		t.Run(name, func(t *testing.T) {
			var values map[string]any
			if err := yaml.Unmarshal([]byte(text), &values); err != nil {
				t.Fatal(err)
			}
			manifests, err := rendered(t, values)
			if err != nil {
				t.Fatal(err)
			}
			all, err := objects(manifests)
			if err != nil {
				t.Fatal(err)
			}
			check(t, binary, all)
		})
	}
	if _, err := rendered(t, map[string]any{"drivers": map[string]any{"count": 2}}); err == nil {
		t.Error("two drivers are taken")
	}
	slip := map[string]any{"executors": map[string]any{"resources": map[string]any{"limit": map[string]any{"cpu": 1}}}}
	if text, err := rendered(t, slip); err == nil {
		if _, err = objects(text); err == nil {
			t.Error("a field is taken that there is none of")
		}
	}
}

// check holds objects against each other, and their commands against the program.
func check(t *testing.T, binary string, all []runtime.Object) {
	t.Helper()
	var pods []corev1.PodTemplateSpec
	var selects []*metav1.LabelSelector
	drivers := 0
	for _, o := range all {
		switch o := o.(type) {
		case *appsv1.StatefulSet:
			pods, selects = append(pods, o.Spec.Template), append(selects, o.Spec.Selector)
			drivers = int(*o.Spec.Replicas)
		case *appsv1.Deployment:
			pods, selects = append(pods, o.Spec.Template), append(selects, o.Spec.Selector)
			drain := regexp.MustCompile(`--drain=(\d+)s`).FindStringSubmatch(strings.Join(
				o.Spec.Template.Spec.Containers[0].Args, " "))
			grace := *o.Spec.Template.Spec.TerminationGracePeriodSeconds
			if drain == nil || fmt.Sprint(grace-30) != drain[1] {
				t.Errorf("an executor is killed after %d s, and drains for %v", grace, drain)
			}
		case *policyv1.PodDisruptionBudget:
			selects = append(selects, o.Spec.Selector)
		case *networkingv1.NetworkPolicy:
			selects = append(selects, &o.Spec.PodSelector)
		case *corev1.Service:
			selects = append(selects, &metav1.LabelSelector{MatchLabels: o.Spec.Selector})
		default:
			t.Errorf("what is %T for?", o)
		}
		m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			t.Fatal(err)
		}
		name := m["metadata"].(map[string]any)["name"].(string)
		if why := validation.IsDNS1123Label(name); len(why) > 0 {
			t.Errorf("%s: %v", name, why)
		}
	}
	if len(pods) != 2 || drivers%2 != 1 {
		t.Fatalf("%d kinds of pods, %d drivers", len(pods), drivers)
	}
	for _, s := range selects {
		selector, err := metav1.LabelSelectorAsSelector(s)
		if err != nil || selector.Empty() || !slices.ContainsFunc(pods, func(p corev1.PodTemplateSpec) bool {
			return selector.Matches(labels.Set(p.Labels))
		}) {
			t.Errorf("%v selects none: %v", s, err)
		}
	}
	for _, p := range pods {
		checkPod(t, binary, p.Spec)
	}
}

// checkPod holds a pod to what a cautious cluster takes, and its commands to flags that there are.
func checkPod(t *testing.T, binary string, p corev1.PodSpec) {
	t.Helper()
	if s := p.SecurityContext; s == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil {
		t.Errorf("%+v", s)
	}
	volumes := map[string]bool{"data": true}
	for _, v := range p.Volumes {
		volumes[v.Name] = true
	}
	for _, c := range slices.Concat(p.InitContainers, p.Containers) {
		if s := c.SecurityContext; s == nil || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem {
			t.Errorf("%s: %+v", c.Name, s)
		}
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] {
				t.Errorf("%s mounts %s, which is not there", c.Name, m.Name)
			}
		}
		known := map[string]bool{}
		for _, e := range c.Env {
			known[e.Name] = true
		}
		commands := [][]string{c.Args}
		if r := c.ReadinessProbe; r != nil && r.Exec != nil {
			commands = append(commands, r.Exec.Command[1:])
		}
		for _, args := range commands {
			help, err := exec.Command(binary, args[0], "--help").Output()
			if err != nil {
				t.Fatalf("volley %s: %v", args[0], err)
			}
			for _, a := range args[1:] {
				name, _, _ := strings.Cut(a, "=")
				if !bytes.Contains(help, []byte(name+" ")) {
					t.Errorf("volley %s has no %s", args[0], name)
				}
				for _, v := range regexp.MustCompile(`\$\(([^)]*)\)`).FindAllStringSubmatch(a, -1) {
					if !known[v[1]] {
						t.Errorf("%s: there is no $(%s)", a, v[1])
					}
				}
			}
		}
	}
}
