"""The sentences of the mission's core document in its order, then those of the Hybrid Computing Layer: what is asked,
the command that shows it, what is open.

A sentence is `shown` by a test of its own name in test_mission.py, or shown by another suite, or open with the reason.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence. shows: the command a person types to see it; elsewhere: the suite that proves it; missing: why not
    yet."""

    id: str
    text: str
    shows: str = ""
    elsewhere: str = ""
    missing: str = ""


REGISTRY = "tests/mission/test_registry.py"
SENTENCES = (
    Sentence(
        "marketplace",
        "a computing power marketplace designed to gather idle GPU hosts from various locations and systematically "
        "integrate them",
        shows="windrow host ls",
    ),
    Sentence(
        "rental",
        "It offers these resources to users through a flexible rental model",
        shows="windrow run -- CMD",
    ),
    Sentence(
        "onboarding",
        "streamlining the deployment and management of these assets",
        shows="windrow token add --join",
        elsewhere="tests/integration/test_onboarding.py brings a second machine in by that line",
    ),
    Sentence(
        "images",
        "By deploying platform images, the platform can aggregate globally dispersed and idle GPU resources",
        missing="a cloud's image joins by its cloud-init file; there is no image of ours to boot from yet",
    ),
    Sentence(
        "no-single-point",
        "also mitigates the risk of single points of failure",
        shows="WINDROW_DATABASE_URL=... windrow up --masters 2; kill the Master that leads",
        elsewhere="tests/integration/test_leader.py, with PostgreSQL; on SQLite there is one Master",
    ),
    Sentence(
        "allocation",
        "The platform automatically performs dynamic allocation and scheduling of GPU resources based on user needs.",
        shows="windrow cluster create --plan --gpu H100 -- CMD",
    ),
    Sentence(
        "distribution",
        "considering factors such as workload, priority, and geographical location of computing tasks",
        missing="jobs have priorities and placement looks at need, tier and price; not yet at where hosts are",
    ),
    Sentence(
        "interface",
        "The platform offers an intuitive and user-friendly interface",
        shows="open http://127.0.0.1:8000",
        elsewhere="tests/browser rents by mouse in a real Chromium",
    ),
    Sentence("parts", "This consists of the Agent, Access, and Master components.", shows="windrow up"),
    Sentence(
        "agent-reports",
        "The Agent (deployed on GPU hosts) is responsible for data collection and reporting.",
        shows="windrow host show HOST",
    ),
    Sentence(
        "access-protects",
        "The Access component handles data relay and security protection.",
        shows="GET /api/v1/operators/health; a foreign certificate is turned away",
        elsewhere="tests/integration/test_faults_link.py and test_hostile_messages.py",
    ),
    Sentence(
        "master-stores",
        "responsible for GPU identification and registration, as well as the aggregation and storage of various "
        "monitoring data",
        shows="GET /api/v1/hosts/HOST/history",
    ),
    Sentence(
        "management",
        "composed of resource management, monitoring system, console, and various operational systems",
        shows="windrow; windrow host ls; windrow alert ls; windrow report",
        elsewhere="tests/browser/test_walk.py: every page of a busy market, in four roles",
    ),
    Sentence(
        "sla",
        "ensuring system stability, and guaranteeing service quality (SLA) for users",
        missing="nothing is charged for what a host cannot prove to have run; there is no promised level and no credit",
    ),
    Sentence(
        "gpu-figures",
        "GPU model, memory capacity, core frequency, temperature, power consumption, and current load",
        shows="windrow gpu ls --json",
    ),
    Sentence(
        "tiers",
        "GPUs can be categorized into different classes or tiers based on model, performance parameters, and other "
        "characteristics.",
        shows="windrow host show HOST (tier with its reasons)",
    ),
    Sentence(
        "classifies",
        "the Master identifies and classifies these resources based on basic information reported by the Agent",
        shows="windrow offer ls",
    ),
    Sentence(
        "gpu-speed",
        "evaluating GPU performance metrics such as processing speed, memory, and network bandwidth",
        shows="windrow gpu show GPU; windrow host show HOST",
        elsewhere="tests/integration/test_verification.py and test_bandwidth.py",
    ),
    Sentence(
        "aggregates",
        "The Master aggregates monitoring data reported by the Agent and stores it in a database",
        shows="GET /api/v1/hosts/HOST/history?metric=gpu_power_watts&gpu=GPU",
    ),
    Sentence(
        "brands",
        "The module supports GPUs from various brands and models, ensuring broad applicability.",
        missing="NVIDIA is read through NVML, AMD and Intel from the kernel's files; real cards of NVIDIA only so far",
    ),
    Sentence(
        "state-machines",
        "It maintains the state machines of all Agents, determining the availability of GPU resources.",
        shows="windrow host drain HOST; windrow host activate HOST",
    ),
    Sentence(
        "commands",
        "issue specific commands, such as cluster creation or deletion, and tracks the execution status of these "
        "commands",
        shows="windrow command ls",
    ),
    Sentence(
        "api",
        "Provides APIs or interfaces to integrate with other systems or modules",
        shows="GET /api/v1/openapi.json",
    ),
    Sentence(
        "dns",
        "Agents connect to the nearest Access module through intelligent DNS routing.",
        shows="make DNS records of the map (deploy/dns); cut a host off from its map",
        elsewhere="tests/integration/test_discovery.py and test_dns_records.py, with PowerDNS and its geoip backend",
    ),
    Sentence(
        "nearest",
        "Access automatically selects the optimal connection point to minimize network latency",
        shows="windrow host show HOST (its Access and round trip)",
    ),
    Sentence(
        "balancing",
        "enables load balancing across Access points, preventing server overload",
        shows="windrow access ls (hosts of each)",
        elsewhere="tests/integration/test_regions.py and test_access_death.py: equal Accesses share the hosts",
    ),
    Sentence(
        "failover",
        "the system automatically reroutes the Agent to another available service, ensuring the continuous reporting",
        shows="kill the Access in use; windrow host show HOST",
    ),
    Sentence(
        "gpu-facts",
        "The Agent collects and reports basic GPU information such as core count, manufacturer, and CUDA version.",
        shows="windrow host show HOST",
    ),
    Sentence(
        "buses",
        "It communicates directly with the GPU hardware, using interfaces like PCI-E and NVLink to obtain fundamental "
        "information and status data.",
        shows="windrow gpu show GPU (PCIe generation and lanes, NVLinks and what is at their ends)",
        elsewhere="tests/unit/agent/test_nvml_details.py, through the real nvidia-ml-py onto a fake driver",
    ),
    Sentence(
        "gpu-use",
        "It monitors and reports GPU performance metrics such as utilization and memory usage",
        shows="windrow gpu ls --json",
    ),
    Sentence(
        "speed-test",
        "The Agent periodically tests and reports the upload and download speeds of the GPU host.",
        shows="windrow host measure HOST",
    ),
    Sentence(
        "gpu-availability",
        "obtaining detailed parameters and real-time status to assess GPU availability and compute performance",
        shows="windrow gpu show GPU (availability with its reason, the matrix rate that its challenge measured)",
        elsewhere="tests/integration/test_verification.py, with the shipped kernel on OpenCL's processor",
    ),
    Sentence(
        "executes",
        "The Agent executes commands issued by the Master, such as creating or deleting clusters, and provides "
        "feedback on the results.",
        shows="windrow cluster create; windrow cluster delete",
    ),
    Sentence(
        "reclamation",
        "including their allocation, reclamation, and monitoring",
        shows="windrow gpu ls (free, running, free again)",
    ),
    Sentence(
        "many-users",
        "Dynamically allocates GPU resources to different users based on their needs and resource availability.",
        shows="windrow account add NAME --role renter; windrow login LINK",
        elsewhere="tests/hostile/test_two_accounts.py: two renters, each with hosts, work and money of their own",
    ),
    Sentence(
        "usage",
        "Continuously monitors GPU resource usage, including memory consumption, compute unit utilization, and power "
        "consumption",
        shows="GET /api/v1/hosts/HOST/stream",
    ),
    Sentence(
        "virtualization",
        "Virtualizes and isolates GPU resources",
        missing="whole GPUs, parts by MPS, slices by MIG on a fake driver only; containers and bubblewrap isolate",
    ),
    Sentence(
        "fair",
        "fair scheduling and priority-based scheduling",
        shows="windrow job submit --priority 10 -- CMD",
        elsewhere="tests/unit/jobs/test_service.py and test_decide.py: by priority, then by age; accounts take turns",
    ),
    Sentence(
        "security",
        "Provides robust security mechanisms, including identity authentication and access control",
        shows="windrow token add NAME --role auditor; what it may not do is refused",
    ),
    Sentence(
        "dimensions",
        "utilization, memory usage, temperature, power consumption, and the impact of job processes on GPU performance",
        shows="windrow job show JOB",
        elsewhere="tests/integration/test_jobs.py: before, during and after a job, GPU by GPU",
    ),
    Sentence(
        "analysis",
        "Analyzes the collected data to gain insights into GPU resource usage, identify performance bottlenecks, and "
        "detect potential issues.",
        shows="windrow job doctor JOB",
        elsewhere="tests/integration/test_findings_real.py: seven causes planted on real workloads, 20 sound ones",
    ),
    Sentence(
        "alerts",
        "triggers alerts to enable prompt action to resolve issues",
        shows="windrow alert ls; windrow alert show ALERT",
        elsewhere="tests/integration/test_alert_story.py: mail, webhook and bell of seven causes",
    ),
    Sentence("reports", "Generates reports across various dimensions", shows="windrow report --by host,kind"),
    Sentence(
        "charts",
        "clear visual representations of GPU resource usage, performance charts, and more",
        shows="the host page of the console",
        elsewhere="tests/browser/test_console_states.py and test_console_fleet.py",
    ),
    Sentence(
        "submit",
        "makes it easy for users to submit computing tasks, query results, and manage GPU resources",
        shows='windrow run -- python -c "..." in a folder',
    ),
    Sentence(
        "one-click",
        "allows users to manage GPU resources with a single click",
        shows="the console's buttons",
        elsewhere="tests/browser/test_console_rental.py",
    ),
    Sentence(
        "rich-api",
        "Offers a rich set of APIs, enabling users to access various reports and data efficiently.",
        shows="GET /api/v1/reports?by=host,kind&format=csv",
    ),
    Sentence(
        "functions",
        "train_pytorch_gpu = rh.function(train_pytorch).to(gpu)",
        shows="the first script of the talk with the import line changed: import windrow as rh",
        elsewhere="tests/mission/test_functions.py",
    ),
    Sentence(
        "registry-add",
        "Register a new compute resource in the hybrid computing registry.",
        shows="curl -X POST .../compute-resources; windrow resource add",
        elsewhere=REGISTRY,
    ),
    Sentence(
        "registry-unique",
        "Registration will fail with 400 Bad Request if a duplicate ID is detected.",
        shows="the same line again",
        elsewhere=REGISTRY,
    ),
    Sentence(
        "registry-list",
        "Retrieve all registered compute resources with optional filtering.",
        shows="curl .../compute-resources?status_filter=available; windrow resource ls",
        elsewhere=REGISTRY,
    ),
    Sentence(
        "registry-set",
        "Update the status or configuration of an existing compute resource.",
        shows="curl -X PUT .../compute-resources/ID; windrow resource set",
        elsewhere=REGISTRY,
    ),
    Sentence(
        "registry-remove",
        "Remove decommissioned resources or mark as unavailable",
        shows="windrow resource rm ID; windrow resource set ID --status unavailable",
        elsewhere="tests/unit/master_api/test_model_studio.py",
    ),
    Sentence(
        "hybrid-select",
        "automatically selects the optimal compute resource based on task requirements, data locality, cost "
        "constraints, and current resource availability",
        shows="windrow resource bind ID --host HOST; windrow route FILE; windrow run --host HOST",
    ),
    Sentence(
        "hybrid-reserve",
        "Reserves the selected resource and updates its status to busy",
        shows="windrow job submit --optimize cost -- CMD; windrow resource show ID",
    ),
    Sentence(
        "hybrid-intent",
        "Users can explicitly specify compute preferences",
        shows="windrow route --intent task.json",
    ),
    Sentence(
        "router-recommend",
        "Smart Routing - Platform recommends best option based on workload",
        shows="windrow route train.py --hours 3",
    ),
    Sentence(
        "router-matrix",
        "Decision Matrix: setup time, cost of short and long jobs, availability",
        shows="docs/diagrams/routing.md, computed from the price book for one workload",
        elsewhere="tests/unit/hybrid/test_drawings.py",
    ),
    Sentence(
        "router-typing",
        "Get recommendations as user types",
        shows="the page Where to run: places, bars of cost, pros and cons, why not",
        elsewhere="tests/browser/test_console_routing.py",
    ),
    Sentence(
        "router-compare",
        "Cost Comparison Dashboard: provider, GPU type, $/hour, total, availability",
        shows="windrow price h100 --compare; the pages Where to run and Prices elsewhere",
        elsewhere="tests/browser/test_console_prices.py",
    ),
    Sentence(
        "unified-submit",
        "Let the platform choose the best backend; handle interruptions gracefully; monitor costs across providers",
        shows="from windrow import MLPlatform, Requirements; the example as printed",
        elsewhere="tests/unit/sdk/test_programs.py runs it with its import line changed alone",
    ),
    Sentence(
        "unified-ui",
        "Unified Submission UI: get recommendations as user types, select a backend, submit",
        shows="the pages Where to run and New job: one click fills in the backend that was chosen",
        elsewhere="tests/browser/test_console_clouds.py",
    ),
    Sentence(
        "spot-fallback",
        "Fallback to secondary: transfer any checkpoints, resume on new backend",
        shows="windrow job submit --backend any --spot --budget 2 -- CMD; windrow job show JOB",
        elsewhere="tests/integration/test_burst_story.py, on an emulator of EC2",
    ),
    Sentence(
        "selection-guide",
        "Backend Selection Guide, Migration Playbooks, Cost Optimization Strategies",
        shows="docs/choosing.md",
        elsewhere="tests/unit/sdk/test_clouds_page.py types its commands",
    ),
    Sentence(
        "external-run",
        "External Services (Modal, Paperspace, etc.) - Quick experiments, no setup",
        missing="other providers are compared and shown as not connected; nothing runs there yet",
    ),
)
BY_ID = {sentence.id: sentence for sentence in SENTENCES}
