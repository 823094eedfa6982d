// The shapes of the HTTP API under the console's names. schema.ts is generated from docs/openapi.json; shapes of
// streams are written here.
import type * as Schema from "./schema.ts";

export type Iso = string;
export type Decimal = string;

export type Condition = Schema.ConditionOut;
export type GpuLive = Schema.GpuLiveOut;
export type Gpu = Schema.GpuOut;
export type GpuPage = Schema.GpuPageOut;
export type GpuField = Schema.GpuFieldOut;
export type Verification = Schema.VerificationOut;
export type CardVerification = Schema.CardVerificationOut;
export type Standing = Schema.StandingOut;
export type HostFacts = Schema.HostFactsOut;
export type Unrented = Schema.UnrentedOut;
export type PastVerification = Schema.PastVerificationOut;
export type Slot = Schema.SlotOut;
export type HostLive = Schema.HostLiveOut;
export type Bandwidth = Schema.BandwidthOut;
export type BandwidthRound = Schema.BandwidthRoundOut;
export type BandwidthRounds = Schema.BandwidthRoundsOut;
export type Host = Schema.HostOut;
export type HostProofs = Schema.ProofOut;
export type HostProof = Schema.HostProofOut;
export type ProofStep = Schema.ProofStepOut;
export type Stage = Schema.StageOut;
export type GpuRow = Schema.GpuRowOut;
export type GpuList = Schema.GpusOut;
export type EventRow = Schema.EventOut;
export type CommandRow = Schema.CommandOut;
export type UseCounts = Schema.UseCounts;
export type TierCounts = Schema.TierCounts;
export type Overview = Schema.OverviewOut;
export type Alert = Schema.AlertOut;
export type AlertRules = Schema.AlertRulesOut;
export type AlertMail = Schema.AlertMailOut;
export type Attention = Schema.AttentionOut;
export type BuiltInRule = Schema.BuiltInRuleOut;
export type Channel = Schema.ChannelOut;
export type ChannelMade = Schema.ChannelMadeOut;
export type ChannelRequest = Schema.ChannelBody;
export type ChannelScope = Schema.Scope;
export type ChannelSettings = Schema.ChannelSettingsBody;
export type Delivery = Schema.DeliveryOut;
export type Inbox = Schema.InboxOut;
export type InboxMessage = Schema.MessageOut;
export type OwnRule = Schema.OwnRuleOut;
export type OwnRuleRequest = Schema.OwnRuleBody;
export type RulePreview = Schema.PreviewOut;
export type Silence = Schema.SilenceOut;
export type MaintenanceWindow = Schema.MaintenanceOut;
export type MaintenancePlan = Schema.MaintenancePlanOut;
export type SilenceRequest = Schema.NewSilenceBody;
export type WholeAlert = Schema.WholeAlertOut;
export type AttentionList = Schema.AttentionListOut;
export type Affected = Schema.AffectedOut;
export type UseHistory = Schema.UseHistoryOut;
export type UsePoint = Schema.UsePointOut;
export type OwnHosts = Schema.OwnHostsOut;
export type Why = Schema.WhyOut;
export type Offer = Schema.OfferOut;
export type MachineType = Schema.MachineClassOut;
export type PaidDay = Schema.PaidDayOut;
export type ClusterStep = Schema.StepOut;
export type Workload = Schema.WorkloadOut;
export type Cluster = Schema.ClusterOut;
export type Box = Schema.BoxOut;
export type Notebook = Schema.NotebookOut;
export type TerminalTicket = Schema.TerminalOut;
export type Template = Schema.TemplateOut;
export type Resource = Schema.ResourceOut;
export type Recommendation = Schema.RecommendationOut;
export type RouteRequest = Schema.RouteBody;
export type CloudBackend = Schema.BackendOut;
export type CloudBackendRequest = Schema.BackendBody;
export type CloudKind = Schema.BackendKindOut;
export type CloudOffer = Schema.MachineOfferOut;
export type CloudFinding = Schema.BackendFindingOut;
export type CloudPurchase = Schema.PurchaseOut;
export type CloudPurchaseRequest = Schema.PurchaseBody;
export type CloudSweep = Schema.SweepOut;
export type CloudBuyer = Schema.BuyerOut;
export type UsableBackend = Schema.UsableBackendOut;
export type Try = Schema.TryOut;
export type AttemptPlace = Schema.AttemptPlaceOut;
export type Binding = Schema.BindingOut;
export type RouteAnswer = Schema.RouteOut;
export type Forecast = Schema.KeptRouteOut;
export type KeptEstimate = Schema.ForecastOut;
export type Price = Schema.PriceOut;
export type ResourceRequest = Schema.ResourceBody;
export type Volume = Schema.VolumeOut;
export type VolumeRequest = Schema.VolumeBody;
export type Secret = Schema.SecretOut;
export type SecretRequest = Schema.SecretBody;
export type SecretDeleted = Schema.SecretDeletedOut;
export type SavedVolumes = Schema.SavedVolumesOut;
export type ClusterAccepted = Schema.ClusterAcceptedOut;
export type ReceiptLine = Schema.LineOut;
export type ReceiptTransfer = Schema.TransferOut;
export type FairShare = Schema.FairShareOut;
export type FairShareRequest = Schema.FairShareBody;
export type Quota = Schema.QuotaOut;
export type QuotaRequest = Schema.QuotaBody;
export type Queued = Schema.QueuedOut;
export type QueueList = Schema.QueueOut;
export type Receipt = Schema.ReceiptOut;
export type JoinTokenRow = Schema.JoinTokenOut;
export type SpendingLimit = Schema.LimitOut;
export type Spending = Schema.SpendingOut;
export type Earnings = Schema.EarningsOut;
export type Report = Schema.ReportOut;
export type ReportRow = Schema.SourceRowOut;
export type ReportRequest = Schema.ScheduleBody;
export type ReportSchedule = Schema.ScheduleOut;
export type GpuTimes = Schema.GpuTimesOut;
export type LimitsRequest = Schema.LimitsBody;
/** A request as the Master keeps it, or as a form holds it. */
export type KeptRequest = Partial<Schema.KeptRequestOut>;
/** A host in a stream: everything but its GPUs. */
export type HostSummary = Omit<Schema.HostOut, "gpus">;
export type TokenRow = Schema.TokenOut;
export type TokenMade = Schema.TokenMadeOut;
export type Me = Schema.MeOut;
export type Person = Schema.PersonOut;
export type SimulatedHosts = Schema.SimulatedHostsOut;
export type PersonMade = Schema.PersonMadeOut;
export type LinkRedeemed = Schema.LinkRedeemedOut;
export type AccountBody = Schema.AccountBody;
export type SignedIn = Schema.SignedInOut;
export type Profile = Schema.ProfileOut;
export type ProfileChange = Schema.ProfileBody;
export type Factor = Schema.FactorOut;
export type RecoveryCodes = Schema.CodesOut;
export type Organisation = Schema.OrganisationOut;
export type OrganisationMember = Schema.MemberOut;
export type MemberChange = Schema.MemberBody;
export type PasswordLinkMade = Schema.PasswordLinkOut;
export type Provider = Schema.ProviderOut;
export type ProviderRequest = Schema.ProviderBody;
export type ProviderTested = Schema.ProviderTestedOut;
export type ProviderStarted = Schema.ProviderStartedOut;
export type ProviderButton = Schema.SignInProviderOut;
export type ComeBack = Schema.ProviderCallbackBody;
export type LinkedIdentity = Schema.IdentityOut;
export type Project = Schema.ProjectOut;
export type DeletedProject = Schema.DeletedProjectOut;
export type ProjectOffer = Schema.TransferOfferOut;
export type MarketUser = Schema.MarketUserOut;
export type ObjectShare = Schema.ObjectShareOut;
export type ShareRequest = Schema.ObjectShareBody;
export type ServiceAccount = Schema.ServiceOut;
export type ServiceMade = Schema.ServiceMadeOut;
export type Device = Schema.DeviceOut;
/** One of its fields signs in again. */
export type SessionProof = Partial<Record<keyof Schema.ProveBody, string>>;
export type Invitation = Schema.InvitationOut;
export type InvitationMade = Schema.InvitationMadeOut;
export type InvitationRequest = Schema.InvitationBody;
export type InvitationOpened = Schema.InvitationShownOut;
export type InvitationAccepted = Schema.AcceptBody;
export type CommandLineOffer = Schema.CliOut;
export type Series = Schema.SeriesOut;
export type History = Schema.HistoryOut;
export type UsageHistory = Schema.UsageHistoryOut;
export type ClusterPlan = Schema.PlanOut;
export type Refusal = Schema.RefusalOut;
export type Job = Schema.JobOut;
export type JobAttempt = Schema.AttemptOut;
export type ClusterRequest = Schema.ClusterBody;
export type JobRequest = Schema.JobBody;
export type RegistryLogin = Schema.RegistryLoginBody;
export type JobsSubmitted = Schema.JobsOut;
export type Finding = Schema.FindingOut;
export type Findings = Schema.FindingsOut;
export type JobImpact = Schema.ImpactOut;
export type CardImpact = Schema.CardImpactOut;
export type Stretch = Schema.StretchOut;
export type Explained = Schema.ExplainOut;
export type Explanation = Schema.ExplanationOut;
export type JoinTokenMade = Schema.JoinTokenMadeOut;
export type Health = Schema.HealthOut;
export type Access = Schema.AccessOut;
export type StopTest = Schema.StopOut;
export type AgentRow = Schema.AgentOut;
export type {
  AuditHeadOut as AuditHead,
  AuditOut as AuditRow,
  AuditVerdictOut as AuditVerdict,
  Role,
  SessionOut as SessionRow,
} from "./schema.ts";

export interface Page<T> {
  items: T[];
  next_cursor: string | null;
}

/** Why, and the field or host that it is about; empty where it is about none. */
export interface Reason {
  about: string;
  text: string;
}

export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: string;
  subject: string | null;
  retryable: boolean;
  request_id: string | null;
  reasons: Reason[];
}

export interface HostLiveFrame {
  at: Iso;
  host: Record<string, number | null>;
  gpus: Record<string, Record<string, number | null>>;
}
